#include "onset/report/training_figures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "onset/base/error.h"
#include "onset/report/html.h"

namespace onset {
namespace {

constexpr std::size_t most_points = 1500;   // of a line: more are pixels of one colour
constexpr std::size_t smooth_from = 20;     // points
constexpr std::size_t smoothed_share = 20;  // a running mean is over a twentieth of the points
constexpr std::size_t most_watched = 600;   // columns of the heat map

const std::vector<CurveGroup>& groups() {
  static const std::vector<CurveGroup> table = {
      {"loss",
       "loss",
       "The loss that is minimised, and that of the data kept for evaluation.",
       {"loss", "eval_loss"}},
      {"reward",
       "reward",
       "The reward of the sampled completions: their sum, each by itself, and that of prompts kept "
       "for evaluation.",
       {"reward", "eval_reward", "rewards/*/mean"}},
      {"implicit",
       "implicit reward",
       "DPO's own rewards: beta times how much more likely than the reference the policy makes a "
       "completion. The margin is that of the chosen over the rejected one.",
       {"rewards/chosen", "rewards/rejected", "rewards/margins", "eval_rewards/margins"}},
      {"accuracy",
       "share",
       "How often the right token, or the chosen completion, is the likelier one.",
       {"mean_token_accuracy", "eval_mean_token_accuracy", "rewards/accuracies",
        "eval_rewards/accuracies"}},
      {"spread",
       "share, or spread",
       "How much the completions of a prompt differ in reward: where none does, nothing is "
       "learned; and the share of completions from which every reward abstained.",
       {"reward_std", "frac_reward_zero_std", "frac_reward_abstained"}},
      {"lengths",
       "tokens",
       "How long completions are.",
       {"completions/mean_length", "completions/max_length", "completions/min_length",
        "completions/mean_terminated_length"}},
      {"policy",
       "ratio, KL, shares",
       "How far the policy is from the one that sampled (ratio_error), from the reference (kl), "
       "and "
       "how many tokens are clipped, or completions cut off.",
       {"ratio_error", "kl", "clip_ratio/region_mean", "completions/clipped_ratio"}},
      {"logps",
       "log-probability",
       "Of whole completions, under the policy.",
       {"logps/chosen", "logps/rejected"}},
      {"norm",
       "gradient norm",
       "The norm of all gradients together, before it is clipped.",
       {"grad_norm"},
       true},
      {"rate", "learning rate", "As the schedule says.", {"learning_rate"}},
      {"speed", "tokens a second", "Of the whole step, sampling included.", {"tokens_per_second"}},
  };
  return table;
}

// "rewards/*/mean" holds "rewards/format/mean".
bool matches(const std::string& pattern, const std::string& name) {
  const std::size_t star = pattern.find('*');
  if (star == std::string::npos) return pattern == name;
  const std::string end = pattern.substr(star + 1);
  return name.size() > star + end.size() && name.compare(0, star, pattern, 0, star) == 0 &&
         name.ends_with(end);
}

struct Points {
  std::vector<double> steps;
  std::vector<double> values;
};

Points points_of(const std::vector<MetricsLine>& lines, const std::string& name) {
  Points points;
  for (const MetricsLine& line : lines) {
    for (const auto& [metric, value] : line.metrics) {
      if (metric != name) continue;
      points.steps.push_back(static_cast<double>(line.step));
      points.values.push_back(value);
    }
  }
  return points;
}

// Means over blocks of neighbours, where there are more than a picture shows.
Points thinned(const Points& points) {
  const std::size_t count = points.steps.size();
  if (count <= most_points) return points;
  Points thin;
  for (std::size_t b = 0; b < most_points; ++b) {
    const std::size_t begin = b * count / most_points;
    const std::size_t end = (b + 1) * count / most_points;
    double step = 0;
    double value = 0;
    for (std::size_t i = begin; i < end; ++i) {
      step += points.steps[i];
      value += points.values[i];
    }
    thin.steps.push_back(step / static_cast<double>(end - begin));
    thin.values.push_back(value / static_cast<double>(end - begin));
  }
  return thin;
}

// Over so many points around each one, fewer at the ends.
std::vector<double> running_mean(const std::vector<double>& values, std::size_t width) {
  std::vector<double> means;
  means.reserve(values.size());
  const std::size_t half = width / 2;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t begin = i < half ? 0 : i - half;
    const std::size_t end = std::min(values.size(), i + half + 1);
    double sum = 0;
    for (std::size_t j = begin; j < end; ++j) sum += values[j];
    means.push_back(sum / static_cast<double>(end - begin));
  }
  return means;
}

OrderedJson numbers(const std::vector<double>& values) {
  OrderedJson list = OrderedJson::array();
  for (const double value : values) list.push_back(picture_number(static_cast<float>(value)));
  return list;
}

OrderedJson series_json(const std::string& name, const Points& all) {
  const Points points = thinned(all);
  OrderedJson steps = OrderedJson::array();
  for (const double step : points.steps) steps.push_back(std::round(step));
  OrderedJson smooth = nullptr;
  if (points.values.size() >= smooth_from) {
    smooth = numbers(running_mean(points.values,
                                  std::max<std::size_t>(3, points.values.size() / smoothed_share)));
  }
  return {{"name", name},
          {"steps", std::move(steps)},
          {"values", numbers(points.values)},
          {"smooth", std::move(smooth)}};
}

std::vector<std::string> metric_names(const std::vector<MetricsLine>& lines) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const MetricsLine& line : lines) {
    for (const auto& [name, value] : line.metrics) {
      if (seen.insert(name).second) names.push_back(name);
    }
  }
  return names;
}

// "loss: 2.31 at step 10, 1.07 at step 500."
std::string see_words(const std::string& name, const Points& points) {
  const std::string last =
      str_cat(number_text(points.values.back()), " at step ", number_text(points.steps.back()));
  if (points.values.size() == 1) return str_cat(name, ": ", last, ".");
  return str_cat(name, ": ", number_text(points.values.front()), " at step ",
                 number_text(points.steps.front()), ", ", last, ".");
}

// Of a group's series, what the caption tells: the first, what was held out, and DPO's margin.
bool is_told(const std::string& name, bool is_first) {
  return is_first || name.starts_with("eval_") || name == "rewards/margins";
}

// Of so many that the first and the last are among them.
std::vector<std::size_t> spread_rows(std::size_t all) {
  constexpr std::size_t most_rows = 200;
  const std::size_t count = std::min(all, most_rows);
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < count; ++i) {
    rows.push_back(count == 1 ? 0 : i * (all - 1) / (count - 1));
  }
  return rows;
}

std::string rows_caption(const std::string& file, std::size_t shown, std::size_t all) {
  return shown < all ? str_cat(file, ", ", shown, " of ", all, " lines") : file;
}

// The lines that have one of these metrics.
Table numbers_table(const std::vector<MetricsLine>& lines, const std::vector<std::string>& names) {
  std::vector<std::vector<std::string>> all;
  for (const MetricsLine& line : lines) {
    const std::map<std::string, double> values(line.metrics.begin(), line.metrics.end());
    std::vector<std::string> row{str_cat(line.step)};
    bool has_one = false;
    for (const std::string& name : names) {
      const auto found = values.find(name);
      has_one |= found != values.end();
      row.push_back(found == values.end() ? "" : number_text(found->second));
    }
    if (has_one) all.push_back(std::move(row));
  }
  const auto shown = spread_rows(all.size());
  Table table{.caption = rows_caption("metrics.jsonl", shown.size(), all.size()),
              .header = {"step"},
              .numeric = std::vector<bool>(names.size() + 1, true),
              .rows = {}};
  table.header.insert(table.header.end(), names.begin(), names.end());
  for (const std::size_t row : shown) table.rows.push_back(std::move(all[row]));
  return table;
}

Table watch_table(const std::vector<WatchedStep>& watched) {
  const std::size_t layers = watched.front().max_abs.size();
  const auto shown = spread_rows(watched.size());
  Table table{.caption = rows_caption("watch.jsonl, largest |x|", shown.size(), watched.size()),
              .header = {"step", "ME layer"},
              .numeric = std::vector<bool>(layers + 2, true),
              .rows = {}};
  for (std::size_t l = 0; l < layers; ++l) table.header.push_back(str_cat("layer ", l));
  for (const std::size_t at : shown) {
    const WatchedStep& step = watched[at];
    std::vector<std::string> row{str_cat(step.step),
                                 step.me_layer ? str_cat(*step.me_layer) : "none"};
    for (const double value : step.max_abs) row.push_back(number_text(value));
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

double mean_of_metric(const std::vector<MetricsLine>& lines, const std::string& name,
                      std::size_t begin, std::size_t end) {
  const Points points = points_of({lines.begin() + static_cast<std::ptrdiff_t>(begin),
                                   lines.begin() + static_cast<std::ptrdiff_t>(end)},
                                  name);
  if (points.values.empty()) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  for (const double value : points.values) sum += value;
  return sum / static_cast<double>(points.values.size());
}

std::vector<Figure> curve_figures(const std::vector<MetricsLine>& lines) {
  const std::vector<std::string> names = metric_names(lines);
  std::vector<Figure> figures;
  for (const CurveGroup& group : groups()) {
    OrderedJson series = OrderedJson::array();
    std::vector<std::string> drawn;
    std::string see;
    bool is_positive = true;
    for (const std::string& pattern : group.names) {
      for (const std::string& name : names) {
        if (!matches(pattern, name)) continue;
        const Points points = points_of(lines, name);
        const auto least = std::min_element(points.values.begin(), points.values.end());
        is_positive = is_positive && *least > 0;
        if (is_told(name, see.empty())) {
          see += str_cat(see.empty() ? "" : " ", see_words(name, points));
        }
        drawn.push_back(name);
        series.push_back(series_json(name, points));
      }
    }
    if (series.empty()) continue;
    figures.push_back({.id = "curve-" + group.id,
                       .kind = "training_curves",
                       .see = see,
                       .read = group.read,
                       .alt = str_cat("Lines over the steps of the run. ", see),
                       .data = {{"axis", group.axis},
                                {"logarithmic", group.logarithmic && is_positive},
                                {"series", std::move(series)}},
                       .tables = {numbers_table(lines, drawn)}});
  }
  return figures;
}

Figure watch_figure(const std::vector<WatchedStep>& watched) {
  OrderedJson steps = OrderedJson::array();
  OrderedJson columns = OrderedJson::array();
  OrderedJson me_layers = OrderedJson::array();
  const std::size_t count = std::min(watched.size(), most_watched);
  for (std::size_t i = 0; i < count; ++i) {
    // The first and the last stay.
    const std::size_t at = count == 1 ? 0 : i * (watched.size() - 1) / (count - 1);
    const WatchedStep& step = watched[at];
    steps.push_back(step.step);
    columns.push_back(numbers(step.max_abs));
    me_layers.push_back(step.me_layer ? OrderedJson(*step.me_layer) : OrderedJson(nullptr));
  }
  const auto first = std::find_if(watched.begin(), watched.end(), [](const WatchedStep& step) {
    return step.me_layer.has_value();
  });
  const auto largest = [](const WatchedStep& step) {
    double most = 0;
    for (const double value : step.max_abs)
      most = std::isfinite(value) ? std::max(most, value) : most;
    return most;
  };
  std::string see =
      str_cat("The largest |x| goes from ", number_text(largest(watched.front())), " at step ",
              watched.front().step, " to ", number_text(largest(watched.back())), " at step ",
              watched.back().step, ". ");
  if (first == watched.end()) {
    see += "No step that was watched has an ME layer.";
  } else if (first == watched.begin()) {
    see += str_cat("There is an ME layer from the first step on: layer ", *first->me_layer, ".");
  } else {
    see += str_cat("An ME layer is there first at step ", first->step, ": layer ", *first->me_layer,
                   ".");
  }
  if (first != watched.end()) {
    const WatchedStep& last = watched.back();
    see += last.me_layer ? str_cat(" At the end it is layer ", *last.me_layer, ".")
                         : std::string(" At the end there is none.");
  }
  return {.id = "watch",
          .kind = "training_watch",
          .see = see,
          .read =
              "A column is a step of the run, a row a layer, the colour the largest |x| behind it "
              "on a logarithmic scale. Dots are the ME layer by scan's rule, at the steps that "
              "have one. \"Lines\" draws each layer over the steps.",
          .alt = "Heat map of the largest |x| by layer and step. " + see,
          .data = {{"steps", std::move(steps)},
                   {"max_abs", std::move(columns)},
                   {"me_layer", std::move(me_layers)}},
          .tables = {watch_table(watched)}};
}

}  // namespace onset
