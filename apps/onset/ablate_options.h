// The options of `onset ablate`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli.h"
#include "onset/eval/ablation.h"
#include "onset/eval/engine.h"
#include "options.h"
#include "task_options.h"

namespace onset::app {

struct AblateOptions : TaskOptions {
  std::int64_t windows = 64;
  std::vector<std::string> criteria;
  std::vector<std::string> rates;
  std::vector<std::string> ks;
  std::vector<std::string> from_layers;
  std::vector<std::string> gammas;
  std::vector<std::string> placements;
  std::vector<std::string> tokens;
  AblationGrid grid;
  std::int64_t seeds = 3;
  std::int64_t budget = 0;
  PairedOptions paired;
  ComputeOptions compute;
  std::int64_t batch_tokens = EvalOptions().batch_tokens;
  std::string cache;
  std::string output;
  bool log_samples = false;
  bool json = false;
  bool quiet = false;

  void declare(CommandLine& line);
  // Fills the grid. Usage errors of lists that cannot be read and of options that do not go
  // together.
  void resolve();
};

}  // namespace onset::app
