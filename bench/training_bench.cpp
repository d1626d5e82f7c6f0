// Tokens a second and peak memory of training steps: one warm-up step, then `steps`.
//   training_bench MODEL full|lora f32|bf16 ROWS TOKENS STEPS [recompute]
// bench/training_peer.py does the same with transformers.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "onset/base/error.h"
#include "onset/model/decoder.h"
#include "onset/model/parameters.h"
#include "onset/model/runtime.h"
#include "onset/train/lora.h"
#include "onset/train/policy.h"
#include "onset/train/sft.h"
#include "onset/train/trainer.h"

namespace {

using namespace onset;

double peak_gib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / (1024.0 * 1024.0);
}

// Ids that look like text to nobody, the same as in the peer's script.
std::vector<PackedRow> rows_of(std::int64_t count, std::int64_t length, std::int64_t vocabulary) {
  std::vector<PackedRow> rows;
  std::int64_t state = 1;
  for (std::int64_t r = 0; r < count; ++r) {
    SftExample example;
    for (std::int64_t t = 0; t < length; ++t) {
      state = (state * 48271) % 2147483647;
      example.ids.push_back(state % vocabulary);
    }
    example.trained.assign(static_cast<std::size_t>(length), 1);
    example.trained.front() = 0;
    rows.push_back({example});
  }
  return rows;
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() < 6)
    throw usage_error("training_bench MODEL full|lora f32|bf16 ROWS TOKENS STEPS [recompute]");
  const std::int64_t rows = std::stoll(arguments[3]);
  const std::int64_t length = std::stoll(arguments[4]);
  const std::int64_t steps = std::stoll(arguments[5]);
  keep_freed_memory();
  set_threads(2);
  Model model = Model::open(
      arguments[0], {.compute = parse_compute(arguments[2]), .residency = Residency::resident});
  Decoder& decoder = model.decoder_to_change();
  decoder.recompute_blocks(arguments.size() > 6 && arguments[6] == "recompute");
  std::optional<Parameters> parameters;
  std::optional<LoraAdapter> adapter;
  if (arguments[1] == "lora") {
    LoraConfig config;
    config.rank = 16;
    config.alpha = 32;
    config.all_linear = true;
    adapter.emplace(decoder, config, new_lora(decoder, config, 1), /*trains=*/true);
    if (decoder.compute() == Compute::bf16) decoder.release_pages();
  } else {
    parameters.emplace(decoder, /*converted=*/false);
  }
  const auto refresh = [&] {
    if (parameters) parameters->refresh();
    if (adapter) adapter->refresh();
  };
  Policy policy(model, parameters ? parameters->all() : adapter->parameters(), refresh, {});
  const Ranks alone;
  SftObjective objective(policy, rows_of(rows, length, model.config().vocabulary), {},
                         {.window = {.batch = rows}}, alone);
  TrainerOptions options;
  options.schedule = {
      .shape = ScheduleShape::constant, .learning_rate = 1e-5, .total_steps = steps + 1};
  std::chrono::steady_clock::time_point begin;
  TrainerCalls calls;
  calls.updated = [&](std::int64_t step, const Metrics& metrics) {
    if (step == 1) begin = std::chrono::steady_clock::now();
    std::printf("step %lld loss %.5f\n", static_cast<long long>(step), metrics.front().second);
  };
  Trainer(policy, objective, alone, options, calls).run();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  std::printf("%.1f tokens/s, peak %.2f GiB\n",
              static_cast<double>(rows * length * steps) / elapsed.count(), peak_gib());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "training_bench: %s\n", error.what());
    return 1;
  }
}
