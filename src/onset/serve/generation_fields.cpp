#include "onset/serve/generation_fields.h"

#include <charconv>
#include <random>
#include <utility>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/model/model.h"
#include "onset/serve/api_error.h"

namespace onset {
namespace {

constexpr std::int64_t most_samples = 128;
constexpr std::size_t most_stops = 64;

void check_model_name(Fields& fields, const ServedModel& served) {
  const auto name = fields.text("model");
  if (!name || *name == served.id) return;
  throw ApiError(str_cat("the model ", quote(*name), " is not here; this server has ",
                         quote(served.id), ", and the field may be left out"),
                 {.status = 404, .param = "model", .code = "model_not_found"});
}

std::vector<std::string> stops_of(Fields& fields) {
  const Json* stop = fields.find("stop");
  std::vector<std::string> stops;
  if (stop == nullptr) return stops;
  const Json list = stop->is_array() ? *stop : Json::array({*stop});
  for (const auto& item : list) {
    if (!item.is_string()) {
      throw bad_field(
          "stop", str_cat("stop: should be a string or an array of them, holds ", kind_of(item)));
    }
    stops.push_back(item.get<std::string>());
    if (stops.back().empty()) throw bad_field("stop", "stop: an empty string ends nothing");
  }
  if (stops.size() > most_stops) {
    throw bad_field("stop", str_cat("stop: has ", stops.size(), " strings, at most ", most_stops));
  }
  return stops;
}

std::int64_t token_of(const std::string& text, const ServedModel& served,
                      const std::string& param) {
  std::int64_t id = -1;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, id);
  if (parsed.ec != std::errc() || parsed.ptr != end || id < 0 ||
      id >= served.model.config().vocabulary) {
    throw bad_field(param, str_cat(param, ": ", quote(text, 40), " is no token of the model (0 to ",
                                   served.model.config().vocabulary - 1, ")"));
  }
  return id;
}

std::map<std::int64_t, double> logit_bias_of(Fields& fields, const ServedModel& served) {
  const Json* bias = fields.find("logit_bias");
  std::map<std::int64_t, double> result;
  if (bias == nullptr) return result;
  Fields entries(*bias, "logit_bias");
  for (const auto& [key, value] : bias->items()) {
    const auto id = token_of(key, served, "logit_bias");
    if (const auto given = entries.number(key, -100, 100)) result[id] = *given;
  }
  return result;
}

std::vector<std::int64_t> stop_ids_of(Fields& fields, const ServedModel& served) {
  const Json* ids = fields.find("stop_token_ids");
  std::vector<std::int64_t> result;
  if (ids == nullptr) return result;
  if (!ids->is_array()) {
    throw bad_field("stop_token_ids",
                    str_cat("stop_token_ids: should be an array, is ", kind_of(*ids)));
  }
  for (const auto& id : *ids) result.push_back(token_of(id.dump(), served, "stop_token_ids"));
  return result;
}

SamplingOptions sampling_of(Fields& fields, const ServedModel& served) {
  SamplingOptions sampling;
  sampling.temperature = fields.number("temperature", 0, 100).value_or(sampling.temperature);
  sampling.top_p = fields.number("top_p", 0, 1).value_or(sampling.top_p);
  // -1 says "no limit" to other servers.
  sampling.top_k = std::max<std::int64_t>(fields.integer("top_k", -1).value_or(0), 0);
  sampling.min_p = fields.number("min_p", 0, 1).value_or(sampling.min_p);
  sampling.repetition_penalty =
      fields.number("repetition_penalty", 1e-3, 1e3).value_or(sampling.repetition_penalty);
  sampling.frequency_penalty = fields.number("frequency_penalty", -2, 2).value_or(0);
  sampling.presence_penalty = fields.number("presence_penalty", -2, 2).value_or(0);
  sampling.logit_bias = logit_bias_of(fields, served);
  if (const auto seed = fields.integer("seed")) {
    sampling.seed = static_cast<std::uint64_t>(*seed);
  } else if (served.seed != 0) {
    sampling.seed = served.seed;
  } else {
    // Small enough for every client's JSON, so that it can be given back as "seed".
    sampling.seed = (std::uint64_t{std::random_device{}()} << 20U) ^ std::random_device{}();
  }
  return sampling;
}

}  // namespace

GenerationFields read_generation_fields(Fields& fields, const ServedModel& served,
                                        MaskChooser& masks) {
  check_model_name(fields, served);
  GenerationFields result;
  auto& request = result.request;
  request.samples = fields.integer("n", 1, most_samples).value_or(1);
  request.sampling = sampling_of(fields, served);
  try {
    check_sampling(request.sampling);
  } catch (...) {
    throw current_api_error();
  }
  request.stop = stops_of(fields);
  request.stop_ids = stop_ids_of(fields, served);
  request.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  request.show_special = !fields.boolean("skip_special_tokens").value_or(true);
  result.stream = fields.boolean("stream").value_or(false);
  if (const Json* options = fields.find("stream_options")) {
    if (!result.stream) {
      throw bad_field("stream_options", "stream_options: is for streams; set stream too");
    }
    Fields inner(*options, "stream_options");
    result.include_usage = inner.boolean("include_usage").value_or(false);
    inner.ignore({"include_obfuscation"});
    inner.refuse_others();
  }
  result.mask = masks.choose(fields.find("wemask"));
  request.mask = result.mask.spec;
  fields.ignore({"user", "metadata", "store", "service_tier", "safety_identifier",
                 "prompt_cache_key", "prompt_cache_retention", "parallel_tool_calls"});
  return result;
}

void check_prompt(const ServedModel& served, const GenerationRequest& request,
                  const std::string& param) {
  if (request.ids.empty()) throw bad_field(param, param + ": holds no token");
  if (served.context <= 0) return;
  const auto length = static_cast<std::int64_t>(request.ids.size());
  const std::int64_t needed = length + (request.max_new_tokens > 0 ? 1 : 0);
  if (needed > served.context) {
    throw ApiError(str_cat("the prompt has ", length, " tokens, and the context of ",
                           served.context, " leaves no room for an answer"),
                   {.param = param, .code = "context_length_exceeded"});
  }
}

}  // namespace onset
