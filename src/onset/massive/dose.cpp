#include "onset/massive/dose.h"

#include "onset/massive/key_meter.h"
#include "onset/model/hooks.h"
#include "onset/model/model.h"

namespace onset {
namespace {

DoseCondition run_condition(const Model& model, const DoseQuestion& question, std::string name,
                            std::optional<double> dose, const EntryChoice& entries,
                            const EntryEdit& edit) {
  DoseCondition condition;
  condition.name = std::move(name);
  condition.dose = dose;
  const Installer install = [&](Hooks& hooks) {
    // A dose of 1 leaves everything as it is, and no copy is made of it.
    if (edit.scale != 1.0 || !edit.values.empty()) add_entry_edit(hooks, entries, edit);
  };
  const KeyMeter keys(model.config().layer_count(), question.sinks.key);
  condition.text = measure_text(model, question.text, question.sinks, install,
                                [&](Hooks& hooks) { keys.observe(hooks); });
  condition.keys = keys.readings();
  return condition;
}

}  // namespace

DoseResult run_doses(const Model& model, const DoseQuestion& question, const Log& log) {
  DoseResult result{.layer = question.entries.layer,
                    .dims = question.entries.dims,
                    .position = question.entries.position,
                    .key = question.sinks.key,
                    .mean = question.mean,
                    .control_dim = question.control_dim,
                    .control_position = question.control_position,
                    .conditions = {}};
  const auto total = std::ssize(question.doses) + 3;
  const auto add = [&](std::string name, std::optional<double> dose, const EntryChoice& entries,
                       const EntryEdit& edit) {
    result.conditions.push_back(
        run_condition(model, question, std::move(name), dose, entries, edit));
    log.step("doses", std::ssize(result.conditions), total);
  };
  for (const double dose : question.doses) {
    add("dose", dose, question.entries, {.scale = dose});
  }
  add("mean", std::nullopt, question.entries, {.values = question.mean});
  EntryChoice dim = question.entries;
  dim.dims = {question.control_dim};
  dim.position = question.entries.position.value_or(question.sinks.key);
  add("control_dim", std::nullopt, dim, {.scale = 0.0});
  EntryChoice token = question.entries;
  token.position = question.control_position;
  add("control_token", std::nullopt, token, {.scale = 0.0});
  return result;
}

}  // namespace onset
