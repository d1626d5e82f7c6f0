// Tokens a second of GRPO's rollouts: groups of completions drawn at temperature 1 with the
// probability of every token, from prompts of 64 tokens.
//
//   rollout_bench MODEL [THREADS] [f32|bf16] [COMPLETIONS [LENGTH [MASK]]]
//
// Four completions a prompt; MASK is a wemask.json made for the model. bench/rollout_peer.py draws
// as many with transformers.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "onset/base/error.h"
#include "onset/model/config.h"
#include "onset/model/model.h"
#include "onset/model/runtime.h"
#include "onset/tokenizer/tokenizer.h"
#include "onset/train/rollout.h"
#include "onset/wemask/mask_json.h"

namespace {

using namespace onset;

constexpr std::size_t prompt_tokens = 64;
constexpr std::int64_t group = 4;
constexpr int rounds = 4;  // the first warms up

void draw(const Model& model, const Tokenizer& tokenizer, RolloutRequest request,
          std::int64_t prompts, int round) {
  std::mt19937_64 random(static_cast<std::uint64_t>(round));
  std::uniform_int_distribution<std::int64_t> id(0, model.config().vocabulary - 1);
  std::vector<RolloutPrompt> data(static_cast<std::size_t>(prompts));
  for (std::size_t i = 0; i < data.size(); ++i) {
    data[i].prompt.resize(prompt_tokens);
    for (std::int64_t& token : data[i].prompt) token = id(random);
    request.prompts.push_back(&data[i]);
    request.indices.push_back(static_cast<std::int64_t>(i));
    request.numbers.push_back(i);
  }
  request.completions = group;
  request.sampling.seed = static_cast<std::uint64_t>(round);
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<RolledOut> drawn = roll_out(model, tokenizer, request);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::size_t tokens = 0;
  for (const RolledOut& one : drawn) tokens += one.ids.size();
  if (round == 0) return;
  std::printf("%zu completions, %zu tokens: %.1f tokens/s\n", drawn.size(), tokens,
              static_cast<double>(tokens) / seconds.count());
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.empty())
    throw usage_error("rollout_bench MODEL [THREADS] [f32|bf16] [COMPLETIONS [LENGTH [MASK]]]");
  const auto argument = [&](std::size_t i, const char* otherwise) {
    return i < arguments.size() ? arguments[i] : std::string(otherwise);
  };
  keep_freed_memory();
  set_threads(std::stoi(argument(1, "2")));
  const Model model = Model::open(arguments[0], {.compute = parse_compute(argument(2, "f32")),
                                                 .residency = Residency::resident});
  const Tokenizer tokenizer = Tokenizer::open(arguments[0]);
  RolloutRequest request;
  request.max_length = std::stoll(argument(4, "64"));
  request.sampling.temperature = 1;
  if (arguments.size() > 5) {
    request.mask = std::make_shared<const MaskSpec>(read_mask(arguments[5]));
  }
  for (int round = 0; round < rounds; ++round) {
    draw(model, tokenizer, request, std::stoll(argument(3, "8")) / group, round);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rollout_bench: %s\n", error.what());
    return 1;
  }
}
