// Speed of the forward pass: prefill, decoding, and what an observer on every resid_post costs.
//
//   model_bench MODEL [TOKENS] [THREADS] [f32|bf16]
//
// Each figure is the median of several runs; what is compared is run in turn, so that a change of
// the machine's speed meets both.
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <vector>

#include "onset/base/error.h"
#include "onset/model/decoder.h"
#include "onset/model/runtime.h"

namespace {

using onset::Compute;

double seconds(const std::function<void()>& action) {
  const auto begin = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Medians of actions that take turns, after one round that is not counted.
std::vector<double> in_turn(const std::vector<std::function<void()>>& actions, int rounds) {
  std::vector<std::vector<double>> times(actions.size());
  for (int round = -1; round < rounds; ++round) {
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const double time = seconds(actions[i]);
      if (round >= 0) times[i].push_back(time);
    }
  }
  std::vector<double> medians;
  for (const auto& runs : times) medians.push_back(median(runs));
  return medians;
}

std::vector<std::int64_t> random_ids(std::int64_t count, std::int64_t vocabulary) {
  std::mt19937_64 random(1);
  std::uniform_int_distribution<std::int64_t> id(0, vocabulary - 1);
  std::vector<std::int64_t> ids(static_cast<std::size_t>(count));
  for (std::int64_t& value : ids) value = id(random);
  return ids;
}

// Floating-point operations of the products with weights for one token, without the head.
double linear_flops(const onset::Decoder& decoder) {
  double flops = 0;
  const auto add = [&](const onset::Linear& linear, double times = 1) {
    flops += 2.0 * times * static_cast<double>(linear.in_features() * linear.out_features());
  };
  for (const onset::LayerWeights& layer : decoder.weights().layers) {
    const onset::AttentionWeights& attention = layer.attention;
    for (const onset::Linear* linear : {&attention.q, &attention.k, &attention.v, &attention.o}) {
      add(*linear);
    }
    if (!layer.mixture) {
      for (const onset::Linear* linear : {&layer.ffn.gate, &layer.ffn.up, &layer.ffn.down}) {
        add(*linear);
      }
      continue;
    }
    // All experts have one shape.
    const onset::FfnWeights& expert = layer.mixture->experts.front();
    for (const onset::Linear* linear : {&expert.gate, &expert.up, &expert.down}) {
      add(*linear, static_cast<double>(decoder.config().mixture.chosen));
    }
    add(layer.mixture->router);
  }
  return flops;
}

// The machine's own rate on this model's FFN shape: at::linear on dense weights.
double dense_rate(const onset::ModelConfig& config, std::int64_t tokens, at::ScalarType type) {
  const at::Tensor x = at::randn({tokens, config.hidden}).to(type);
  const at::Tensor w = at::randn({config.ffn, config.hidden}).to(type);
  const double time = in_turn({[&] {
                                for (int i = 0; i < 8; ++i) static_cast<void>(at::linear(x, w));
                              }},
                              9)[0];
  return 8 * 2.0 * static_cast<double>(tokens * config.hidden * config.ffn) / time;
}

void bench(const char* path, Compute compute, std::int64_t tokens) {
  const onset::Model model =
      onset::Model::open(path, {.compute = compute, .residency = onset::Residency::resident});
  const onset::Decoder& decoder = model.decoder();
  const auto ids = random_ids(tokens, model.config().vocabulary);
  const std::vector<onset::SequenceInput> batch{{.ids = ids, .cache = nullptr}};
  onset::SiteSet sites(model.config().layer_count());
  sites.add_all_layers(onset::SiteKind::resid_post);
  onset::Hooks hooks(model.config().layer_count());
  std::int64_t observed = 0;
  hooks.observe(sites, [&](const onset::SiteContext&, const at::Tensor&) { ++observed; });
  const auto prefill = [&](const onset::Hooks* with) {
    static_cast<void>(decoder.forward(batch, onset::LogitRows::last, with));
  };
  const auto times = in_turn({[&] { prefill(nullptr); }, [&] { prefill(&hooks); }}, 11);
  const double flops = linear_flops(decoder) * static_cast<double>(tokens);
  const double rate =
      dense_rate(model.config(), tokens, compute == Compute::bf16 ? at::kBFloat16 : at::kFloat);
  std::printf(
      "%s: prefill of %ld tokens: %.0f tokens/s, %.0f GFLOP/s in the products (%.0f %% of "
      "at::linear's %.0f)\n",
      onset::compute_name(compute).data(), static_cast<long>(tokens),
      static_cast<double>(tokens) / times[0], flops / times[0] * 1e-9,
      100 * flops / times[0] / rate, rate * 1e-9);
  std::printf("%s: an observer on every resid_post: %+.1f %%\n",
              onset::compute_name(compute).data(), 100 * (times[1] / times[0] - 1));

  onset::KvCache cache = decoder.new_cache();
  const std::vector<onset::SequenceInput> prompt{{.ids = random_ids(64, 100), .cache = &cache}};
  static_cast<void>(decoder.forward(prompt, onset::LogitRows::last));
  const double step =
      in_turn({[&] {
                const std::vector<onset::SequenceInput> one{{.ids = {1}, .cache = &cache}};
                static_cast<void>(decoder.forward(one, onset::LogitRows::last));
              }},
              31)[0];
  std::printf("%s: decoding at batch 1: %.1f tokens/s\n", onset::compute_name(compute).data(),
              1.0 / step);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: model_bench MODEL [TOKENS] [THREADS] [f32|bf16]\n");
    return 2;
  }
  try {
    const c10::InferenceMode inference;
    onset::keep_freed_memory();
    onset::set_threads(argc > 3 ? std::atoi(argv[3]) : 0);
    const std::int64_t tokens = argc > 2 ? std::atol(argv[2]) : 512;
    for (const Compute compute : {Compute::f32, Compute::bf16}) {
      if (argc < 5 || onset::compute_name(compute) == argv[4]) bench(argv[1], compute, tokens);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "model_bench: %s\n", error.what());
    return 1;
  }
}
