// What a step costs beside its passes: AdamW, the sum of gradients over the ranks, and the bytes of
// a checkpoint. Alone, or started by mpirun.
//
//   step_bench [MILLIONS_OF_WEIGHTS [FOLDER]]
#include <ATen/ATen.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "onset/base/error.h"
#include "onset/base/file.h"
#include "onset/base/ranks.h"
#include "onset/base/strings.h"
#include "onset/model/parameter.h"
#include "onset/model/runtime.h"
#include "onset/train/optimizer.h"
#include "onset/train/rank_gradients.h"

namespace {

using namespace onset;

constexpr std::int64_t million = 1000000;

double seconds_of(const std::function<void()>& action) {
  action();  // warms up
  constexpr int rounds = 3;
  const auto begin = std::chrono::steady_clock::now();
  for (int round = 0; round < rounds; ++round) action();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  return elapsed.count() / rounds;
}

int run(const std::vector<std::string>& arguments) {
  const Ranks ranks = Ranks::join();
  const std::int64_t millions = arguments.empty() ? 100 : std::stoll(arguments[0]);
  set_threads(ranks.count() == 1 ? 2 : 1);
  std::vector<Parameter> parameters;
  for (std::int64_t i = 0; i < millions; ++i) {
    at::Tensor value = at::ones({million});
    value.requires_grad_(true);
    value.mutable_grad() = at::full({million}, 1e-3);
    parameters.push_back({.name = str_cat("w", i), .value = value});
  }
  const double weights = static_cast<double>(millions * million);
  const auto say = [&](const char* what, double seconds, double bytes) {
    if (!ranks.is_first()) return;
    std::printf("%s: %.0f million weights/s, %.2f GB/s\n", what, weights / seconds / 1e6,
                bytes * weights / seconds / 1e9);
  };
  {
    AdamW optimizer(parameters, {});
    // Reads weight, gradient and two moments, writes all but the gradient.
    say("AdamW", seconds_of([&] { optimizer.step(1e-6); }), 28);
  }
  if (ranks.count() > 1) {
    say("sum over the ranks", seconds_of([&] { add_gradients(parameters, ranks); }), 4);
    say("checksum", seconds_of([&] { check_same_weights(parameters, ranks); }), 4);
  }
  if (arguments.size() > 1 && ranks.is_first()) {
    const auto path = std::filesystem::path(arguments[1]) / "step_bench.bytes";
    const std::string bytes(static_cast<std::size_t>(4 * millions * million), 'x');
    say("checkpoint, to the disk", seconds_of([&] { write_file_atomically(path, bytes); }), 4);
    std::filesystem::remove(path);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "step_bench: %s\n", error.what());
    end_all_ranks(1);
    return 1;
  }
}
