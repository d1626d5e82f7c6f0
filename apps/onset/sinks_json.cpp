// The JSON of `onset sinks`.

#include <utility>

#include "masked.h"
#include "onset/massive/sinks_json.h"
#include "sinks_report.h"

namespace onset::app {
namespace {

OrderedJson number(double value) { return float_or_null(static_cast<float>(value)); }

OrderedJson samples_json(const ModelSinks& sinks, const SinksResult& result) {
  OrderedJson rows = OrderedJson::array();
  for (std::size_t s = 0; s < sinks.samples.ids.size(); ++s) {
    OrderedJson row{{"ids", sinks.samples.ids[s]}};
    row.update(sink_sample_json(result.samples[s], result.options.threshold));
    rows.push_back(std::move(row));
  }
  return rows;
}

OrderedJson text_json(const SinkSamples& samples) {
  const bool text = samples.source != SampleSource::ids;
  const char* source = samples.source == SampleSource::file ? "file" : "built-in";
  const auto length = samples.ids.front().size();
  bool equal = true;
  for (const auto& ids : samples.ids) equal = equal && ids.size() == length;
  return {{"source", text ? source : "ids"},
          {"tokens", text ? OrderedJson(samples.text_tokens) : OrderedJson(nullptr)},
          {"length", equal ? OrderedJson(length) : OrderedJson(nullptr)},
          {"samples", samples.ids.size()},
          {"samples_in_text", text ? OrderedJson(samples.text_samples) : OrderedJson(nullptr)}};
}

OrderedJson control_json(const ModelSinks& sinks, bool masked) {
  if (!sinks.control) return nullptr;
  const auto& control = *sinks.control;
  const auto& result = masked ? *control.masked : control.result;
  return {{"id", control.id},
          {"piece", control.piece ? OrderedJson(valid_utf8(*control.piece)) : OrderedJson(nullptr)},
          {"length", control.length},
          {"sink_rate", number(result.summary.sink_rate)},
          {"sink_rate_incl_self", number(result.summary.sink_rate_incl_self)},
          {"layers", sink_layers_json(result, sinks.windows)}};
}

// What was measured, the same fields without and with a mask.
OrderedJson measured_json(const ModelSinks& sinks, const SinksResult& result, bool masked) {
  return {{"sink_rate", number(result.summary.sink_rate)},
          {"sink_rate_incl_self", number(result.summary.sink_rate_incl_self)},
          {"layers", sink_layers_json(result, sinks.windows)},
          {"control", control_json(sinks, masked)},
          {"samples", samples_json(sinks, result)}};
}

}  // namespace

OrderedJson sinks_json(const ModelSinks& sinks) {
  const auto& result = sinks.result;
  const bool blocks = result.options.route == SinkRoute::blocks;
  OrderedJson json{{"model", sinks.model},
                   {"token", result.options.key},
                   {"threshold", result.options.threshold},
                   {"softmax", blocks ? "blocks" : "explicit"},
                   {"text", text_json(sinks.samples)}};
  json.update(measured_json(sinks, result, false));
  json["wemask"] = wemask_json(sinks.mask);
  json["masked"] = sinks.masked ? measured_json(sinks, *sinks.masked, true) : OrderedJson(nullptr);
  return json;
}

}  // namespace onset::app
