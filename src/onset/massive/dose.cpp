#include "onset/massive/dose.h"

#include <ATen/core/Tensor.h>

#include <memory>
#include <utility>

#include "onset/base/error.h"
#include "onset/massive/key_meter.h"
#include "onset/model/hooks.h"
#include "onset/model/model.h"

namespace onset {
namespace {

// |x| of one position after the edited layer beside the others.
class NormMeter {
 public:
  explicit NormMeter(std::int64_t position) : sums_(std::make_shared<Sums>()) {
    sums_->position = position;
  }

  void observe(Hooks& hooks, std::int64_t layer) const {
    SiteSet sites(hooks.layer_count());
    sites.add({SiteKind::resid_post, layer});
    hooks.observe(sites, [sums = sums_](const SiteContext& context, const at::Tensor& state) {
      for (const SequenceRows& rows : context.sequences) {
        if (rows.count < sums->position + 2) continue;
        add_norms(state.narrow(0, rows.row, rows.count).unsqueeze(1), sums->position, sums->own,
                  sums->others);
        sums->samples += 1;
      }
    });
  }
  [[nodiscard]] double own() const { return sums_->own / sums_->samples; }
  [[nodiscard]] double others() const { return sums_->others / sums_->samples; }

 private:
  struct Sums {
    std::int64_t position = 0;
    double own = 0;
    double others = 0;
    double samples = 0;
  };
  std::shared_ptr<Sums> sums_;
};

DoseCondition run_condition(const Model& model, const DoseQuestion& question, std::string name,
                            std::optional<double> dose, const Installer& install, const Log& log) {
  DoseCondition condition;
  condition.name = std::move(name);
  condition.dose = dose;
  const KeyMeter keys(model.config().layer_count(), question.sinks.key);
  const NormMeter norms(question.sinks.key);
  condition.text = measure_text(
      model, question.text, question.sinks, install,
      [&](Hooks& hooks) {
        keys.observe(hooks);
        norms.observe(hooks, question.entries.layer);
      },
      log);
  condition.keys = keys.readings();
  condition.state_norm = norms.own();
  condition.others_state_norm = norms.others();
  return condition;
}

Installer editing(const EntryChoice& entries, const EntryEdit& edit) {
  return [entries, edit](Hooks& hooks) {
    // A dose of 1 leaves everything as it is, and no copy is made of it.
    if (edit.scale != 1.0 || !edit.values.empty()) add_entry_edit(hooks, entries, edit);
  };
}

}  // namespace

DoseResult run_doses(const Model& model, const DoseQuestion& question, const Log& log,
                     const Hooks* interventions) {
  DoseResult result{.layer = question.entries.layer,
                    .dims = question.entries.dims,
                    .position = question.entries.position,
                    .key = question.sinks.key,
                    .mean = question.mean,
                    .control_dim = question.control_dim,
                    .control_position = question.control_position,
                    .attention_removed = question.attention_writes,
                    .conditions = {}};
  const auto total = std::ssize(question.doses) + 4;
  const auto add = [&](std::string name, std::optional<double> dose, const Installer& install) {
    const auto steps =
        steps_within(log, str_cat("doses ", std::ssize(result.conditions) + 1, "/", total));
    result.conditions.push_back(run_condition(model, question, std::move(name), dose,
                                              behind(interventions, install), steps));
    log.step("doses", std::ssize(result.conditions), total);
  };
  for (const double dose : question.doses) {
    add("dose", dose, editing(question.entries, {.scale = dose}));
  }
  add("mean", std::nullopt, editing(question.entries, {.values = question.mean}));
  add("block_write", std::nullopt,
      [&](Hooks& hooks) { remove_write(hooks, question.entries, question.attention_writes); });
  EntryChoice dim = question.entries;
  dim.dims = {question.control_dim};
  dim.position = question.entries.position.value_or(question.sinks.key);
  add("control_dim", std::nullopt, editing(dim, {.scale = 0.0}));
  EntryChoice token = question.entries;
  token.position = question.control_position;
  add("control_token", std::nullopt, editing(token, {.scale = 0.0}));
  return result;
}

const DoseCondition* condition_of(const DoseResult& dose, const std::string& name,
                                  std::optional<double> value) {
  for (const auto& condition : dose.conditions) {
    if (condition.name == name && condition.dose == value) return &condition;
  }
  return nullptr;
}

}  // namespace onset
