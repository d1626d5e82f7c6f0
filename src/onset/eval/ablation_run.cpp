#include "onset/eval/ablation_run.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "onset/base/error.h"
#include "onset/base/json.h"
#include "onset/base/ranks.h"
#include "onset/eval/energy_control.h"
#include "onset/massive/sinks.h"
#include "onset/model/model.h"
#include "onset/wemask/mask_effect.h"
#include "onset/wemask/mask_json.h"

namespace onset {
namespace {

using Answers = std::vector<std::vector<ItemAnswer>>;  // by task

MaskCriterion criterion_of(AblationArm arm) {
  switch (arm) {
    case AblationArm::activation:
      return MaskCriterion::activation;
    case AblationArm::magnitude:
      return MaskCriterion::magnitude;
    case AblationArm::lowest:
      return MaskCriterion::lowest;
    case AblationArm::random:
      return MaskCriterion::random;
    case AblationArm::weight:
    case AblationArm::random_energy:
      break;
  }
  return MaskCriterion::weight;
}

class Ablation {
 public:
  Ablation(const Model& model, const Tokenizer& tokenizer, const AblationGrid& grid,
           const AblationInput& input, const AblationWatcher& watcher, const Log& log)
      : model_(model),
        tokenizer_(tokenizer),
        input_(input),
        watcher_(watcher),
        log_(log),
        settings_(settings_of(grid)) {
    result_.grid = grid;
    result_.points = points_of(grid);
    result_.options = input.paired;
    if (settings_.empty()) throw usage_error("the grid of the ablation is empty");
    if (input.tasks.empty()) throw usage_error("the ablation has no tasks");
    for (const auto& setting : settings_) conditions_ += std::ssize(setting.seeds);
  }

  AblationResult run() {
    tell("no mask");
    Answers answers(input_.tasks.size());
    answer(nullptr, 0, all_items, answers);
    if (watcher_.answers) watcher_.answers("no mask", nullptr, answers);
    result_.baseline = score_columns(input_.tasks, answers);
    result_.baseline_sink_rate = sink_rate(nullptr);
    std::vector<std::vector<std::vector<ScoreColumn>>> columns;
    for (const AblationSetting& setting : settings_) columns.push_back(run_setting(setting));
    result_.rows = ablation_rows(settings_, result_.baseline, columns, input_.paired);
    return std::move(result_);
  }

 private:
  static constexpr std::int64_t all_items = INT64_MAX;

  void tell(const std::string& name) {
    if (watcher_.condition) watcher_.condition(name, told_, conditions_);
    ++told_;
  }

  // Adds the answers of the items [begin, end) of each task; texts are answered whole the first
  // time.
  void answer(const std::shared_ptr<const MaskSpec>& mask, std::int64_t begin, std::int64_t end,
              Answers& answers) const {
    for (std::size_t t = 0; t < input_.tasks.size(); ++t) {
      const AblationTask& task = input_.tasks[t];
      const auto count = std::ssize(task.items);
      const bool is_text = task.task.kind == ItemKind::text;
      const std::int64_t first = is_text ? (begin == 0 ? 0 : count) : std::min(begin, count);
      const std::int64_t last = is_text ? count : std::min(end, count);
      if (first >= last) continue;
      EvalOptions options = input_.engine;
      options.mask = mask;
      if (is_text) {
        options.windows.window = task.task.windows.window;
        options.windows.stride = task.task.windows.stride;
      }
      auto found = answer_items(
          model_, tokenizer_,
          std::span(task.items)
              .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first)),
          options, log_);
      answers[t].insert(answers[t].end(), std::make_move_iterator(found.answers.begin()),
                        std::make_move_iterator(found.answers.end()));
    }
  }

  [[nodiscard]] std::optional<double> sink_rate(const MaskSpec* mask) const {
    if (input_.sink_samples.empty()) return std::nullopt;
    const auto hooks = mask == nullptr ? nullptr : masking(*mask, model_);
    return measure_sinks(model_, input_.sink_samples, {}, log_, hooks.get()).summary.sink_rate;
  }

  // The mean over the layers where a token was masked.
  [[nodiscard]] double energy_removed(const MaskSpec& mask) const {
    double sum = 0;
    double layers = 0;
    for (const MaskedLayer& layer : mask_effect(model_, mask, input_.beginnings)) {
      if (layer.tokens == 0) continue;
      sum += layer.energy_removed;
      ++layers;
    }
    return sum / layers;
  }

  [[nodiscard]] MaskSpec mask_of(const AblationSetting& setting, std::uint64_t seed) {
    MaskOptions options = result_.points[setting.point].options();
    options.criterion = criterion_of(setting.arm);
    options.seed = seed;
    options.massive_dims = input_.massive_dims;
    MaskSpec mask = make_mask(model_, options);
    if (setting.arm != AblationArm::random_energy) return mask;
    auto& energy = energy_[setting.point];
    if (energy.empty()) energy = input_energy(model_, mask, input_.beginnings);
    return energy_control(mask, energy, seed);
  }

  // Dims that go by sums of what a model computes might differ between machines.
  [[nodiscard]] MaskSpec of_first_rank(MaskSpec mask) const {
    const Ranks* ranks = input_.engine.ranks;
    if (ranks == nullptr || ranks->count() == 1) return mask;
    const auto masks = ranks->gather(mask_json(mask).dump());
    return parse_mask(parse_json(masks.front(), "mask of a rank"), "mask of a rank");
  }

  // The columns of each mask of the setting.
  std::vector<std::vector<ScoreColumn>> run_setting(const AblationSetting& setting) {
    const std::string name = setting_name(result_.grid, result_.points[setting.point], setting.arm);
    std::vector<std::shared_ptr<const MaskSpec>> masks;
    std::vector<std::string> names;
    std::vector<Answers> answers;
    AblationMeasures measures;
    double sinks = 0;
    double energy = 0;
    for (const std::uint64_t number : setting.seeds) {
      const std::string own = setting.seeds.size() > 1 ? str_cat(name, ", mask ", number) : name;
      tell(own);
      masks.push_back(std::make_shared<const MaskSpec>(
          of_first_rank(mask_of(setting, input_.paired.seed + number))));
      names.push_back(own);
      if (watcher_.mask) watcher_.mask(own, *masks.back());
      answers.emplace_back(input_.tasks.size());
      answer(masks.back(), 0, input_.budget > 0 ? input_.budget : all_items, answers.back());
      sinks += sink_rate(masks.back().get()).value_or(0);
      energy += energy_removed(*masks.back());
    }
    measures.stopped = input_.budget > 0 && is_worse(columns_of(answers));
    if (input_.budget > 0 && !measures.stopped) {
      for (std::size_t m = 0; m < masks.size(); ++m) {
        answer(masks[m], input_.budget, all_items, answers[m]);
      }
    }
    for (std::size_t m = 0; m < masks.size() && watcher_.answers; ++m) {
      watcher_.answers(names[m], masks[m].get(), answers[m]);
    }
    const auto count = static_cast<double>(masks.size());
    if (!input_.sink_samples.empty()) measures.sink_rate = sinks / count;
    measures.energy_removed = energy / count;
    result_.measures.push_back(measures);
    return columns_of(answers);
  }

  [[nodiscard]] std::vector<std::vector<ScoreColumn>> columns_of(
      const std::vector<Answers>& answers) const {
    std::vector<std::vector<ScoreColumn>> columns;
    columns.reserve(answers.size());
    for (const Answers& of_mask : answers) columns.push_back(score_columns(input_.tasks, of_mask));
    return columns;
  }

  // Bonferroni over settings and the two looks at each.
  [[nodiscard]] bool is_worse(const std::vector<std::vector<ScoreColumn>>& columns) const {
    const double level = input_.paired.alpha / (2 * static_cast<double>(settings_.size()));
    const auto mean = mean_columns(columns);
    std::string last;
    for (std::size_t c = 0; c < mean.size(); ++c) {
      const ScoreColumn& baseline = result_.baseline[c];
      if (std::exchange(last, baseline.task) == baseline.task) continue;
      const auto found = compare_columns(baseline, mean[c], input_.paired);
      if (!found || found->p > level) continue;
      if ((found->difference > 0) != baseline.higher_is_better) return true;
    }
    return false;
  }

  const Model& model_;
  const Tokenizer& tokenizer_;
  const AblationInput& input_;
  const AblationWatcher& watcher_;
  const Log& log_;
  std::vector<AblationSetting> settings_;
  std::map<std::size_t, std::map<std::int64_t, std::vector<double>>> energy_;  // by point
  std::int64_t conditions_ = 1;
  std::int64_t told_ = 0;
  AblationResult result_;
};

}  // namespace

AblationResult run_ablation(const Model& model, const Tokenizer& tokenizer,
                            const AblationGrid& grid, const AblationInput& input,
                            const AblationWatcher& watcher, const Log& log) {
  return Ablation(model, tokenizer, grid, input, watcher, log).run();
}

}  // namespace onset
