// The options of `onset eval`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli.h"
#include "mask_option.h"
#include "onset/eval/engine.h"
#include "options.h"
#include "output.h"
#include "task_options.h"

namespace onset::app {

struct EvalVerbOptions : TaskOptions {
  bool list = false;
  std::string chat_format;
  bool one_message = false;
  bool no_thinking = false;
  BosChoice bos = BosChoice::automatic;
  std::int64_t max_new_tokens = 0;
  double temperature = 0;
  std::int64_t window = 0;
  std::int64_t stride = -1;
  MaskFileOptions mask;
  ComputeOptions compute;
  std::int64_t batch_tokens = EvalOptions().batch_tokens;
  Overlong overlong = Overlong::truncate;
  std::string cache;
  std::string output;
  bool log_samples = false;
  bool json = false;
  bool quiet = false;

  void declare(CommandLine& line);
  // Usage errors of options that do not go together.
  void check() const;
  // What they say over what the task says; `context`: the model's, 0 where it has no end.
  void adjust(Task& task, std::int64_t context, Console& console) const;
  [[nodiscard]] ItemOptions items_of(const std::optional<ChatFormat>& format) const;
  [[nodiscard]] EvalOptions engine_options(const std::optional<MaskSpec>& spec) const;
};

}  // namespace onset::app
