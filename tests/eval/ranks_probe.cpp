// Answers the items of the tests on the small model, shared among the ranks that mpirun started,
// runs an ablation over them, and prints what the first rank then knows. `fail`: the second rank
// throws instead.
#include <cstdio>
#include <string>

#include "eval/eval_support.h"
#include "onset/base/error.h"
#include "onset/base/ranks.h"
#include "onset/eval/ablation_run.h"

namespace onset::testing {
namespace {

std::vector<EvalItem> all_items() {
  std::vector<EvalItem> items = choice_items();
  for (EvalItem& item : generation_items(7)) items.push_back(std::move(item));
  items.push_back({.kind = ItemKind::text, .context = "the quick brown fox and the lazy dog"});
  return items;
}

AblationResult ablate(const SmallModel& small, const Ranks& ranks) {
  AblationTask task;
  task.task.name = task.column = "toy";
  task.task.metrics.emplace_back().name = "acc";
  task.items = choice_items();
  for (EvalItem& item : task.items) item.gold = item.doc % 2;
  AblationInput input;
  input.tasks.push_back(std::move(task));
  input.engine.batch_tokens = 40;
  input.engine.ranks = &ranks;
  input.beginnings = {{3, 4, 5}, {7, 8}};
  const AblationGrid grid{
      .arms = {AblationArm::weight, AblationArm::random, AblationArm::random_energy},
      .rates = {0.25, 1},
      .ks = {},
      .from_layers = {0},
      .gammas = {1},
      .placements = {MaskPlacement::post_norm},
      .tokens = {MaskTokens::first},
      .seeds = 2};
  return run_ablation(small.model(), small.tokenizer(), grid, input);
}

int run(const std::string& mode) {
  const Ranks ranks = Ranks::join();
  const SmallModel small;
  if (mode == "fail" && ranks.rank() == 1)
    throw input_error("the second rank fails as it was told");
  const EvalResult result = answer_items(
      small.model(), small.tokenizer(), all_items(),
      {.batch_tokens = 40, .windows = {.window = 6}, .generation_rows = 1, .ranks = &ranks});
  const AblationResult ablation = ablate(small, ranks);
  if (!ranks.is_first()) return 0;
  for (const ItemAnswer& answer : result.answers) {
    for (const double loglik : answer.loglik) std::printf("%.17g ", loglik);
    std::printf("%.17g %s\n", answer.nll, answer.text.c_str());
  }
  for (std::size_t r = 0; r < ablation.rows.size(); ++r) {
    const auto& found = ablation.rows[r].scores.at(0).result;
    std::printf("row %zu: %.17g %.17g, %.17g of the energy\n", r, found->a, found->b,
                ablation.measures[r].energy_removed.value_or(-1));
  }
  return 0;
}

}  // namespace
}  // namespace onset::testing

int main(int argc, char** argv) {
  try {
    return onset::testing::run(argc > 1 ? argv[1] : "");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ranks_probe: %s\n", error.what());
    onset::end_all_ranks(1);
    return 1;
  }
}
