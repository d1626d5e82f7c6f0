#include "onset/report/training_page.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "onset/base/error.h"
#include "onset/base/file.h"
#include "onset/base/json.h"
#include "onset/base/strings.h"
#include "onset/report/html.h"
#include "onset/report/training_figures.h"
#include "onset/report/training_words.h"

namespace onset {
namespace {

constexpr const char* watch_file = "watch.jsonl";
constexpr const char* settings_file = "settings.toml";
constexpr std::size_t most_bytes = std::size_t{64} << 20U;

WatchedStep watched_step(const Json& line, const std::string& where) {
  const auto step = find_int(line, "step", where);
  require_input(step.has_value() && *step >= 0, where, ": no step");
  WatchedStep watched{.step = *step, .me_layer = find_int(line, "me_layer", where)};
  const auto layers = line.find("layers");
  require_input(layers != line.end() && layers->is_array() && !layers->empty(), where,
                ": no layers");
  for (const Json& layer : *layers) {
    require_input(layer.is_object(), where, ": a layer should be an object");
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    watched.max_abs.push_back(find_number(layer, "max_abs", where).value_or(none));
    watched.ratio.push_back(find_number(layer, "ratio", where).value_or(none));
  }
  return watched;
}

// What a metric came to: the mean over the last tenth of its lines, and over the first.
struct Course {
  double first = std::numeric_limits<double>::quiet_NaN();
  double last = std::numeric_limits<double>::quiet_NaN();
};

Course course_of(const std::vector<MetricsLine>& lines, const std::string& metric) {
  const std::size_t count = lines.size();
  const std::size_t part = std::max<std::size_t>(1, count / 10);
  return {.first = count > 1 ? mean_of_metric(lines, metric, 0, part)
                             : std::numeric_limits<double>::quiet_NaN(),
          .last = mean_of_metric(lines, metric, count - part, count)};
}

struct Point {
  std::int64_t step = 0;
  double value = 0;
};

// The last value of a metric that few lines have.
std::optional<Point> last_of(const std::vector<MetricsLine>& lines, const std::string& metric) {
  std::optional<Point> last;
  for (const MetricsLine& line : lines) {
    for (const auto& [known, value] : line.metrics) {
      if (known == metric) last = {.step = line.step, .value = value};
    }
  }
  return last;
}

// The lines of updates, which all have a loss; without those of evaluations.
std::vector<MetricsLine> update_lines(const std::vector<MetricsLine>& lines) {
  std::vector<MetricsLine> updates;
  for (const MetricsLine& line : lines) {
    const bool evaluates =
        std::all_of(line.metrics.begin(), line.metrics.end(),
                    [](const Metric& metric) { return metric.first.starts_with("eval_"); });
    if (!evaluates) updates.push_back(line);
  }
  return updates;
}

// "from 0.5; held out 0.8".
void add_highlight(const TrainingPageInput& input, const std::vector<MetricsLine>& updates,
                   const std::string& metric, const std::string& name,
                   std::vector<Fact>& highlights) {
  const Course course = course_of(updates, metric);
  if (std::isnan(course.last)) return;
  std::vector<std::string> remarks;
  if (!std::isnan(course.first)) remarks.push_back("from " + number_text(course.first));
  const auto held_out = metric == "loss" ? std::nullopt : last_of(input.lines, "eval_" + metric);
  if (held_out) remarks.push_back("held out " + number_text(held_out->value));
  highlights.push_back(
      {.name = name, .value = number_text(course.last), .remark = join(remarks, "; ")});
}

std::vector<Fact> highlights_of(const TrainingPageInput& input) {
  const std::vector<MetricsLine> updates = update_lines(input.lines);
  std::vector<Fact> highlights;
  highlights.push_back({.name = "steps",
                        .value = number_text(static_cast<double>(input.lines.back().step)),
                        .remark = ""});
  add_highlight(input, updates, "loss", "train loss", highlights);
  if (const auto held_out = last_of(input.lines, "eval_loss")) {
    highlights.push_back({.name = "held-out loss",
                          .value = number_text(held_out->value),
                          .remark = str_cat("at step ", held_out->step)});
  }
  add_highlight(input, updates, "reward", "reward", highlights);
  add_highlight(input, updates, "rewards/accuracies", "accuracy", highlights);
  add_highlight(input, updates, "rewards/margins", "margin", highlights);
  add_highlight(input, updates, "mean_token_accuracy", "token accuracy", highlights);
  if (!input.watched.empty()) {
    const auto& last = input.watched.back();
    highlights.push_back({.name = "ME layer",
                          .value = last.me_layer ? str_cat(*last.me_layer) : "none",
                          .remark = str_cat("at step ", last.step)});
  }
  return highlights;
}

std::vector<std::string> lead_of(const TrainingPageInput& input) {
  std::vector<std::string> lead;
  if (input.run) lead.push_back(run_sentences(*input.run));
  const Course loss = course_of(update_lines(input.lines), "loss");
  std::string text;
  if (std::isfinite(loss.last)) {
    text = std::isfinite(loss.first)
               ? str_cat("The loss is ", number_text(loss.first), " over the first tenth of ",
                         input.lines.back().step, " steps and ", number_text(loss.last),
                         " over the last")
               : str_cat("The loss is ", number_text(loss.last));
    if (const auto held_out = last_of(input.lines, "eval_loss")) {
      text += str_cat("; on held-out data it is ", number_text(held_out->value), " at step ",
                      held_out->step);
    }
    text += ". ";
  }
  lead.push_back(text + str_cat("The run's folder is ", input.name, "."));
  return lead;
}

}  // namespace

std::vector<WatchedStep> read_watch(const std::filesystem::path& path) {
  const auto file = std::filesystem::is_directory(path) ? path / watch_file : path;
  if (!std::filesystem::exists(file)) return {};
  std::string text = read_file(file, most_bytes);
  text.resize(text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n'));  // a torn last line
  std::map<std::int64_t, WatchedStep> steps;
  std::int64_t number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    if (trim(line).empty()) continue;
    const std::string where = str_cat(file.string(), ":", number);
    const Json json = parse_json(line, where);
    require_input(json.is_object(), where, ": should be an object");
    WatchedStep watched = watched_step(json, where);
    const std::int64_t step = watched.step;
    steps.insert_or_assign(step, std::move(watched));
  }
  std::vector<WatchedStep> watched;
  watched.reserve(steps.size());
  for (auto& [step, one] : steps) {
    require_input(watched.empty() || watched.front().max_abs.size() == one.max_abs.size(),
                  file.string(), ": steps differ in their number of layers");
    watched.push_back(std::move(one));
  }
  return watched;
}

Page training_page(const TrainingPageInput& input) {
  require_input(!input.lines.empty(), input.name, ": metrics.jsonl holds no numbers yet");
  Page page{.kind = input.run ? str_cat("onset train ", name_of(input.run->method)) : "onset train",
            .heading = input.run ? run_heading(*input.run) : input.name,
            .lead = lead_of(input),
            .highlights = highlights_of(input),
            .sections = {},
            .shared = OrderedJson::object()};
  Section curves{.id = "curves", .title = "Curves", .figures = curve_figures(input.lines)};
  if (!input.watched.empty()) {
    page.sections.push_back({.id = "emergence",
                             .title = "Massive activations over the run",
                             .figures = {watch_figure(input.watched)}});
  }
  page.sections.push_back(std::move(curves));
  Section about{.id = "about", .title = "About this run"};
  if (!input.settings.empty()) {
    about.html = str_cat("<pre>", html_escape(input.settings), "</pre>");
  }
  about.facts = input.facts;
  about.remark = "The numbers are in metrics.jsonl and watch.jsonl of the run's folder.";
  page.sections.push_back(std::move(about));
  return page;
}

std::string training_report(const std::filesystem::path& run) {
  const auto settings = run / settings_file;
  const auto folder = std::filesystem::absolute(run).lexically_normal();
  const auto name = folder.has_filename() ? folder.filename() : folder.parent_path().filename();
  TrainingPageInput input{
      .name = valid_utf8(name.string()), .lines = read_metrics(run), .watched = read_watch(run)};
  if (std::filesystem::exists(settings)) {
    input.settings = read_file(settings, most_bytes);
    input.run = written_settings(input.settings);
  }
  return render_page(training_page(input));
}

}  // namespace onset
