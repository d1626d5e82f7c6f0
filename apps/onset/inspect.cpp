// onset inspect: what a model is made of, what it needs, and whether its bytes are sound.

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "inputs.h"
#include "inspect_report.h"
#include "inspect_verify.h"
#include "onset/base/error.h"
#include "onset/base/processors.h"
#include "options.h"
#include "output.h"
#include "verbs.h"

namespace onset::app {
namespace {

struct InspectOptions {
  bool tensors = false;
  bool verify = false;
  std::int64_t threads = 0;
  OutputOptions output;

  void declare(CommandLine& line);
};

void InspectOptions::declare(CommandLine& line) {
  line.group("Contents");
  line.toggle(tensors, "--tensors", "list every tensor: name, type, shape, bytes");
  line.toggle(verify, "--verify",
              "read every byte of every tensor and look for NaN and infinities; the exit code is 1 "
              "where there are some");
  declare_threads(line, threads);
  output.declare(line);
  line.example("onset inspect MODEL", "architecture, types, tokenizer, memory");
  line.example("onset inspect MODEL --tensors", "every tensor too");
  line.example("onset inspect MODEL --verify --quiet && echo sound", "a check for scripts");
}

// The number in "model.layers.12.mlp" or "blk.12.ffn_up.weight", or of another list of blocks, such
// as those of a vision tower.
std::optional<std::int64_t> layer_of(const std::string& name) {
  for (std::size_t begin = 0; begin < name.size();) {
    const auto end = std::min(name.find('.', begin), name.size());
    const auto part = std::string_view(name).substr(begin, end - begin);
    if (!part.empty() && part.size() < 7 &&
        std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; })) {
      return std::stoll(std::string(part));
    }
    begin = end + 1;
  }
  return std::nullopt;
}

// Of the blocks of the language model alone, under the names that the formats give them.
std::optional<std::int64_t> block_of(const std::string& name) {
  constexpr std::array<std::string_view, 4> lists{"model.layers.", "layers.", "blk.",
                                                  "language_model.model.layers."};
  const bool listed = std::any_of(lists.begin(), lists.end(), [&name](std::string_view list) {
    return name.starts_with(list);
  });
  return listed ? layer_of(name) : std::nullopt;
}

// The largest number of a block, plus one.
std::optional<std::int64_t> layers_in(const Checkpoint& checkpoint) {
  std::optional<std::int64_t> layers;
  for (const auto& tensor : checkpoint.tensors()) {
    if (const auto block = block_of(tensor.name)) layers = std::max(layers.value_or(0), *block + 1);
  }
  return layers;
}

// Bytes of a tensor in memory: float32 where it is decoded, as stored otherwise.
double resident_bytes(const TensorInfo& tensor) {
  return converts_to_float32(tensor.dtype) ? static_cast<double>(tensor.elements()) * 4
                                           : static_cast<double>(tensor.bytes);
}

// Activations of a token in the widest FFN of a layer: the dense one, or all experts it is sent to.
std::int64_t widest_ffn(const ModelConfig& config) {
  const auto& mixture = config.mixture;
  return std::max(config.ffn, mixture.chosen * mixture.ffn + mixture.shared_ffn);
}

// Numbers that the cache keeps of a token in a layer.
double cached_per_token(const ModelConfig& config) {
  if (config.has_latent_attention()) {
    return static_cast<double>(config.latent.kv_rank + config.latent.rope_dim);
  }
  return static_cast<double>(config.kv_heads) *
         static_cast<double>(config.head_dim + config.value_dim);
}

MemoryNeed memory_need(const Checkpoint& checkpoint, const std::optional<ModelConfig>& config) {
  struct LayerBytes {
    double stored = 0;
    double decoded = 0;
  };
  MemoryNeed need;
  std::map<std::int64_t, LayerBytes> layers;
  for (const auto& tensor : checkpoint.tensors()) {
    const auto decoded = resident_bytes(tensor);
    need.stored += static_cast<double>(tensor.bytes);
    need.float32 += decoded;
    const auto layer = layer_of(tensor.name);
    if (!layer) continue;
    layers[*layer].stored += static_cast<double>(tensor.bytes);
    layers[*layer].decoded += decoded;
    need.largest_matrix = std::max(need.largest_matrix, decoded);
  }
  for (const auto& [layer, bytes] : layers) {
    need.largest_layer_stored = std::max(need.largest_layer_stored, bytes.stored);
    need.largest_layer = std::max(need.largest_layer, bytes.decoded);
  }
  if (config) {
    constexpr double bytes_of_1k = 4.0 * 1000;
    const auto hidden = static_cast<double>(config->hidden);
    const auto ffn = static_cast<double>(widest_ffn(*config));
    const auto heads = static_cast<double>(config->heads);
    const auto kv_heads = static_cast<double>(config->kv_heads);
    const auto head_dim = static_cast<double>(config->head_dim);
    need.activations_per_1k =
        bytes_of_1k * (4 * hidden + 3 * ffn + (heads + 2 * kv_heads) * head_dim);
    need.kv_cache_per_1k =
        bytes_of_1k * static_cast<double>(config->layer_count()) * cached_per_token(*config);
  }
  return need;
}

std::vector<TypeRow> type_rows(const Checkpoint& checkpoint) {
  std::map<DType, TypeRow> rows;
  for (const auto& tensor : checkpoint.tensors()) {
    auto& row = rows[tensor.dtype];
    row.name = dtype_info(tensor.dtype).name;
    ++row.tensors;
    row.elements += tensor.elements();
    row.bytes += static_cast<std::int64_t>(tensor.bytes);
  }
  std::vector<TypeRow> result;
  result.reserve(rows.size());
  for (auto& [type, row] : rows) result.push_back(std::move(row));
  std::sort(result.begin(), result.end(),
            [](const TypeRow& a, const TypeRow& b) { return a.bytes > b.bytes; });
  return result;
}

// The name that the files give the architecture, for models onset does not know.
std::string named_architecture(const Checkpoint& checkpoint) {
  const bool gguf = checkpoint.format() == CheckpointFormat::gguf;
  const auto& config = checkpoint.config();
  const auto found = config.find(gguf ? "general.architecture" : "model_type");
  return found != config.end() && found->is_string() ? found->get<std::string>() : "not said";
}

// A tokenizer's file, or a folder without a file that may hold weights: those are to be opened, and
// what is wrong with them is to be said.
bool holds_no_weights(const std::filesystem::path& model) {
  std::error_code failed;
  if (std::filesystem::is_regular_file(model, failed)) {
    return model.extension() == ".json" || model.extension() == ".model";
  }
  constexpr std::array<std::string_view, 7> endings{".safetensors", ".gguf", ".bin",    ".pt",
                                                    ".pth",         ".h5",   ".msgpack"};
  for (std::filesystem::directory_iterator entry(model, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const auto name = entry->path().filename().string();
    if (name.ends_with(".safetensors.index.json") ||
        std::any_of(endings.begin(), endings.end(),
                    [&name](std::string_view ending) { return name.ends_with(ending); })) {
      return false;
    }
  }
  return !failed;
}

// Of a tokenizer alone; nothing where `model` is something else.
std::optional<InspectReport> examine_tokenizer_alone(const std::string& model,
                                                     const Error& problem) {
  if (problem.kind() != ErrorKind::input || !holds_no_weights(model)) return std::nullopt;
  InspectReport report;
  try {
    report.tokenizer = Tokenizer::open(model);
  } catch (const Error&) {
    return std::nullopt;  // what is wrong with the model says more
  }
  report.weights_problem = problem.what();
  return report;
}

InspectReport examine(const std::string& model) {
  InspectReport report;
  try {
    report.checkpoint = Checkpoint::open(model);
  } catch (const Error& error) {
    if (auto alone = examine_tokenizer_alone(model, error)) return std::move(*alone);
    throw;
  }
  report.architecture = named_architecture(*report.checkpoint);
  try {
    report.config = read_config(*report.checkpoint);
    report.architecture = report.config->architecture;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::input) throw;
    report.config_problem = error.what();
  }
  try {
    report.tokenizer = Tokenizer::open(model);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::input) throw;
    report.tokenizer_problem = error.what();
  }
  report.parameters = parameter_count(*report.checkpoint);
  report.layers_in_files = layers_in(*report.checkpoint);
  report.types = type_rows(*report.checkpoint);
  report.memory = memory_need(*report.checkpoint, report.config);
  if (report.checkpoint->tensors().empty()) {
    report.weights_problem =
        report.tokenizer ? "the file holds a vocabulary and no tensors" : "there are no tensors";
  }
  return report;
}

}  // namespace

int run_inspect(const Invocation& invocation) {
  InspectOptions options;
  CommandLine line("inspect", "MODEL [options]",
                   "Says what a model is made of: architecture, parameters, types, tokenizer with "
                   "its BOS and EOS policy and chat format, and the memory it needs. A tokenizer "
                   "without weights is shown as far as it goes.",
                   invocation.arguments);
  options.declare(line);
  if (!line.parse()) return print_help(line);
  const auto model = single_model(line, "inspect");
  refuse_overwriting("-o", options.output.output, {.models = {model}});

  ResultWriter writer(options.output.output);
  InspectReport report = examine(model);
  report.list_tensors = options.tensors;
  if (const auto problem = layers_problem(report); !problem.empty()) {
    Console(options.output.quiet).warn(problem);
  }
  if (options.verify && !report.weights_problem.empty()) {
    throw input_error("--verify has no weights to read: " + report.weights_problem,
                      "leave --verify out to see the tokenizer");
  }
  if (options.verify) {
    Console console(options.output.quiet);
    // Reading and judging overlap with two threads even on one core's worth of work.
    const int threads =
        options.threads > 0 ? static_cast<int>(options.threads) : std::max(2, available_cores());
    report.verification = verify_tensors(
        *report.checkpoint, threads, [&console](std::int64_t done, std::int64_t total) {
          console.progress("verifying MB", done / 1'000'000, total / 1'000'000);
        });
  }
  if (options.output.json) {
    auto run = run_json(invocation);
    run["paths"] = {{"model", valid_utf8(model)}};
    writer.write(json_document(inspect_json(report, std::move(run))));
  } else {
    writer.write(inspect_text(report, model));
  }
  writer.finish();
  return report.verification && report.verification->bad() ? 1 : 0;
}

}  // namespace onset::app
