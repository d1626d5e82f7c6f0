// The files of results: what they say beside the scores, and writing them.

#include <chrono>
#include <filesystem>
#include <map>

#include "eval_report.h"
#include "masked.h"
#include "model_json.h"
#include "onset/base/file.h"
#include "onset/base/ranks.h"
#include "onset/base/sha256.h"
#include "onset/base/strings.h"
#include "onset/model/model.h"
#include "output.h"

namespace onset::app {
namespace {

std::string_view dtype_name(Compute compute) {
  switch (compute) {
    case Compute::f32:
      return "float32";
    case Compute::bf16:
      return "bfloat16";
    case Compute::f64:
      return "float64";
  }
  return "";
}

OrderedJson count_or_null(std::int64_t count) {
  return count > 0 ? OrderedJson(count) : OrderedJson(nullptr);
}

OrderedJson config_json(const EvalVerbOptions& options, const std::string& path) {
  static const std::map<BosChoice, std::string> bos_names{
      {BosChoice::automatic, "auto"}, {BosChoice::yes, "yes"}, {BosChoice::no, "no"}};
  OrderedJson json = results_config(options, options.compute, path);
  json["batch_size"] = str_cat(options.batch_tokens, " tokens");
  json["use_cache"] =
      options.cache.empty() ? OrderedJson(nullptr) : OrderedJson(valid_utf8(options.cache));
  json["gen_kwargs"] = options.temperature > 0 ? OrderedJson{{"temperature", options.temperature}}
                                               : OrderedJson(nullptr);
  json["bos"] = bos_names.at(options.bos);
  json["overlong"] = name_of(options.overlong);
  json["enable_thinking"] = options.no_thinking ? OrderedJson(false) : OrderedJson(nullptr);
  return json;
}

OrderedJson extra_json(const EvalVerbOptions& options, const std::string& path, const Model& model,
                       const std::optional<ChatFormat>& chat, const EvalCounts& counts,
                       const Ranks& ranks, const Invocation& invocation) {
  auto run = run_json(invocation);
  add_compute(run, options.compute);
  run["engine"] = {{"ranks", ranks.count()},
                   {"answered", counts.answered},
                   {"reused", counts.reused},
                   {"computed_tokens", counts.computed_tokens},
                   {"asked_tokens", counts.asked_tokens}};
  run["paths"] = {{"model", valid_utf8(path)}, {"data", valid_utf8(options.data)}};
  add_mask_path(run, options.mask.path);
  add_adapter_path(run, options.compute);
  const bool has_system = !options.system.empty();
  const std::chrono::duration<double> date = invocation.started.time_since_epoch();
  const auto seconds = run["seconds"];
  return {{"model", model_json(model)},
          {"model_source", "onset"},
          {"model_name", results_model_name(path)},
          {"model_name_sanitized", results_model_name(path)},
          {"system_instruction",
           has_system ? OrderedJson(valid_utf8(options.system)) : OrderedJson(nullptr)},
          {"system_instruction_sha",
           has_system ? OrderedJson(sha256(options.system)) : OrderedJson(nullptr)},
          {"fewshot_as_multiturn", chat.has_value() && !options.one_message},
          {"chat_template", chat ? OrderedJson(chat->name) : OrderedJson(nullptr)},
          {"max_length", model.config().context},
          {"git_hash", nullptr},
          {"date", date.count()},
          {"total_evaluation_time_seconds", seconds.dump()},
          {"run", std::move(run)}};
}

}  // namespace

std::string results_model_name(const std::string& path) {
  auto name = std::filesystem::path(path).lexically_normal();
  if (name.filename().empty()) name = name.parent_path();
  return valid_utf8(name.filename().string());
}

OrderedJson results_config(const TaskOptions& tasks, const ComputeOptions& compute,
                           const std::string& path) {
  const auto dtype = dtype_name(compute.compute);
  return {{"model", "onset"},
          {"model_args", str_cat("pretrained=", valid_utf8(path), ",dtype=", dtype)},
          {"model_dtype", dtype},
          {"device", device_name(compute.device)},
          {"limit", count_or_null(tasks.limit)},
          {"sample", count_or_null(tasks.sample)},
          {"random_seed", compute.seed},
          {"fewshot_seed", tasks.fewshot_seed}};
}

ResultFacts eval_facts(const EvalVerbOptions& options, const std::string& path, const Model& model,
                       const std::optional<MaskSpec>& mask, const std::optional<ChatFormat>& chat,
                       const EvalCounts& counts, const Ranks& ranks, const Invocation& invocation) {
  return {.config = config_json(options, path),
          .wemask = wemask_json(mask),
          .extra = extra_json(options, path, model, chat, counts, ranks, invocation)};
}

std::filesystem::path write_results(const std::filesystem::path& folder, const std::string& time,
                                    std::span<const AnsweredTask> tasks, const OrderedJson& results,
                                    bool samples) {
  for (const auto& task : tasks) {
    if (!samples) break;
    write_file_atomically(folder / str_cat("samples_", task.result.task.name, "_", time, ".jsonl"),
                          samples_jsonl(task));
  }
  auto path = folder / str_cat("results_", time, ".json");
  write_file_atomically(path, json_document(results));
  return path;
}

}  // namespace onset::app
