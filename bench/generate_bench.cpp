// Speed of the generator: decoding at several batch sizes, and prefill of one prompt.
//
//   generate_bench MODEL [THREADS] [f32|bf16] [MASK]
//
// With a mask (a wemask.json made for the model) also what it costs, as the median of pairs of runs
// with and without it.
//
// All rows decode greedily from prompts of 64 tokens; figures are medians, and what is compared
// takes turns.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "onset/generate/generator.h"
#include "onset/model/model.h"
#include "onset/model/runtime.h"
#include "onset/wemask/mask_json.h"

namespace {

using Mask = std::shared_ptr<const onset::MaskSpec>;

using onset::Compute;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t prompt_tokens = 64;
constexpr std::int64_t new_tokens = 64;
constexpr std::int64_t prefill_tokens = 512;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::vector<std::int64_t> random_ids(std::mt19937_64& random, std::int64_t count,
                                     std::int64_t vocabulary) {
  std::uniform_int_distribution<std::int64_t> id(0, vocabulary - 1);
  std::vector<std::int64_t> ids(static_cast<std::size_t>(count));
  for (std::int64_t& value : ids) value = id(random);
  return ids;
}

// Tokens a second of `rows` sequences, from when the last prompt is done.
double decode_rate(const onset::Model& model, std::int64_t rows, std::mt19937_64& random,
                   const Mask& mask = nullptr) {
  onset::Generator generator(model, nullptr,
                             {.max_rows = rows, .prefill_tokens = 4096, .prefix_cache_bytes = 0});
  for (std::int64_t i = 0; i < rows; ++i) {
    onset::GenerationRequest request{
        .ids = random_ids(random, prompt_tokens, model.config().vocabulary),
        .max_new_tokens = new_tokens,
        .sampling = {.temperature = 0},
        .ignore_eos = true,
        .mask = mask};
    static_cast<void>(generator.submit(std::move(request), {}));
  }
  while (generator.counts().generated_tokens == 0) static_cast<void>(generator.step());
  const std::int64_t before = generator.counts().generated_tokens;
  const auto begin = Clock::now();
  while (generator.step()) {
  }
  return static_cast<double>(generator.counts().generated_tokens - before) / seconds_since(begin);
}

double prefill_rate(const onset::Model& model, std::mt19937_64& random,
                    const Mask& mask = nullptr) {
  onset::Generator generator(model, nullptr, {.prefix_cache_bytes = 0});
  onset::GenerationRequest request{
      .ids = random_ids(random, prefill_tokens, model.config().vocabulary),
      .max_new_tokens = 1,
      .sampling = {.temperature = 0},
      .mask = mask};
  static_cast<void>(generator.submit(std::move(request), {}));
  const auto begin = Clock::now();
  while (generator.step()) {
  }
  return static_cast<double>(prefill_tokens) / seconds_since(begin);
}

// Percent of time that the mask adds: medians over pairs of runs on the same prompts.
void mask_overhead(const onset::Model& model, const Mask& mask) {
  constexpr int pairs = 15;
  const auto overhead = [&](const auto& rate) {
    std::vector<double> ratios;
    for (int pair = -1; pair < pairs; ++pair) {
      std::mt19937_64 first(static_cast<std::uint64_t>(pair + 1));
      std::mt19937_64 second = first;
      // The order alternates, so that a drift of the machine's speed favours neither.
      const double before = pair % 2 == 0 ? rate(first, nullptr) : rate(first, mask);
      const double after = pair % 2 == 0 ? rate(second, mask) : rate(second, nullptr);
      if (pair >= 0) ratios.push_back(pair % 2 == 0 ? before / after : after / before);
    }
    return 100 * (median(ratios) - 1);
  };
  std::printf(
      "the mask adds %+.1f %% to decoding at batch 8, %+.1f %% to a prefill of %ld\n",
      overhead([&](auto& random, const Mask& on) { return decode_rate(model, 8, random, on); }),
      overhead([&](auto& random, const Mask& on) { return prefill_rate(model, random, on); }),
      static_cast<long>(prefill_tokens));
}

void bench(const char* path, Compute compute, const Mask& mask) {
  const onset::Model model =
      onset::Model::open(path, {.compute = compute, .residency = onset::Residency::resident});
  std::mt19937_64 random(1);
  constexpr int rounds = 5;
  const std::vector<std::int64_t> batches{1, 8, 32};
  std::vector<std::vector<double>> rates(batches.size() + 1);
  for (int round = -1; round < rounds; ++round) {
    for (std::size_t i = 0; i <= batches.size(); ++i) {
      const double rate =
          i < batches.size() ? decode_rate(model, batches[i], random) : prefill_rate(model, random);
      if (round >= 0) rates[i].push_back(rate);
    }
  }
  std::printf("%s:", onset::compute_name(compute).data());
  for (std::size_t i = 0; i < batches.size(); ++i) {
    std::printf(" decoding at batch %ld: %.1f tokens/s;", static_cast<long>(batches[i]),
                median(rates[i]));
  }
  std::printf(" prefill of %ld: %.0f tokens/s\n", static_cast<long>(prefill_tokens),
              median(rates.back()));
  if (mask) mask_overhead(model, mask);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: generate_bench MODEL [THREADS] [f32|bf16] [MASK]\n");
    return 2;
  }
  try {
    onset::keep_freed_memory();
    onset::set_threads(argc > 2 ? std::atoi(argv[2]) : 0);
    const Mask mask =
        argc > 4 ? std::make_shared<const onset::MaskSpec>(onset::read_mask(argv[4])) : nullptr;
    for (const Compute compute : {Compute::f32, Compute::bf16}) {
      if (argc < 4 || onset::parse_compute(argv[3]) == compute) bench(argv[1], compute, mask);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "generate_bench: %s\n", error.what());
    return 1;
  }
}
