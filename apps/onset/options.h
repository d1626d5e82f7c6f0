// Options that several verbs share. Each is declared once here: field, flag, default and help.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "cli.h"
#include "inputs.h"
#include "onset/base/json.h"
#include "onset/model/model.h"

namespace onset::app {

enum class BosChoice { automatic, yes, no };

// The texts a verb works on.
struct PromptOptions {
  std::vector<std::string> texts;
  std::vector<std::string> ids;
  std::vector<std::string> jsonl;
  bool chat = false;
  std::string chat_format;
  bool parse_special = false;  // in what messages say
  BosChoice bos = BosChoice::automatic;

  void declare(CommandLine& line);
  [[nodiscard]] bool empty() const { return texts.empty() && ids.empty() && jsonl.empty(); }
};

// How a model is computed.
struct ComputeOptions {
  Compute compute = Compute::f32;
  Device device = {};
  std::int64_t threads = 0;  // 0: available_cores()
  std::int64_t seed = 0;
  std::string adapter;                        // a folder; empty: none
  Residency residency = Residency::streamed;  // what the verb does, not an option

  void declare(CommandLine& line,
               const std::string& seed_help = "recorded in the result; nothing here is random yet");
  [[nodiscard]] int thread_count() const;
  // The adapter's folder among what a verb reads.
  void add_to(InputPaths& inputs) const;
};

// threads, device, compute, seed and how weights are read into a `run` object.
void add_compute(OrderedJson& run, const ComputeOptions& options);
// `run.paths.adapter`: the adapter's folder, null without one.
void add_adapter_path(OrderedJson& run, const ComputeOptions& options);

// "f32", or "f32 on cuda:0".
[[nodiscard]] std::string compute_words(const ComputeOptions& options);

// The model as the options say it is computed, with its adapter.
[[nodiscard]] Model open_model(const std::string& path, const ComputeOptions& options,
                               const Log& log);
// A usage error where an adapter is given for several models.
void refuse_shared_adapter(const ComputeOptions& options, std::size_t models);

// Where the result goes and what it looks like.
struct OutputOptions {
  bool json = false;
  std::string output;
  bool quiet = false;

  void declare(CommandLine& line);
};

// The names of the chat formats, for the help.
[[nodiscard]] std::string chat_format_names();

void declare_threads(CommandLine& line, std::int64_t& threads);

// A usage error for the empty name that an unset shell variable leaves.
void refuse_empty_path(const std::string& path);

// The parts of lists such as "0.1,0.25", given once or several times; `fallback` where none is
// given. Usage errors for a part that is empty or there twice.
[[nodiscard]] std::vector<std::string> parts_of_lists(
    const std::string& option, const std::vector<std::string>& given,
    const std::vector<std::string>& fallback = {});

// The one positional of most verbs. Usage errors when it is missing or when there is more.
[[nodiscard]] std::string single_model(const CommandLine& line, const std::string& verb);

}  // namespace onset::app
