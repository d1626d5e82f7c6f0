#include "onset/report/training_page.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "onset/base/error.h"
#include "onset/base/file.h"
#include "onset/base/json.h"
#include "onset/base/strings.h"
#include "onset/report/html.h"
#include "onset/report/training_figures.h"

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

// The value at the end, and where it came from.
void add_highlight(const std::vector<MetricsLine>& lines, const std::string& metric,
                   const std::string& name, std::vector<Fact>& highlights) {
  const std::size_t count = lines.size();
  const std::size_t part = std::max<std::size_t>(1, count / 10);
  const double last = mean_of_metric(lines, metric, count - part, count);
  const double first = mean_of_metric(lines, metric, 0, part);
  if (std::isnan(last)) return;
  highlights.push_back(
      {.name = name,
       .value = number_text(last),
       .remark = std::isnan(first) || count < 2 ? "" : str_cat("from ", number_text(first))});
}

// The last value of a metric that few lines have.
void add_last(const std::vector<MetricsLine>& lines, const std::string& metric,
              const std::string& name, std::vector<Fact>& highlights) {
  const MetricsLine* last = nullptr;
  double found = 0;
  for (const MetricsLine& line : lines) {
    for (const auto& [known, value] : line.metrics) {
      if (known != metric) continue;
      last = &line;
      found = value;
    }
  }
  if (last == nullptr) return;
  highlights.push_back(
      {.name = name, .value = number_text(found), .remark = str_cat("at step ", last->step)});
}

std::vector<Fact> highlights_of(const TrainingPageInput& input) {
  std::vector<Fact> highlights;
  highlights.push_back({.name = "steps",
                        .value = number_text(static_cast<double>(input.lines.back().step)),
                        .remark = ""});
  add_highlight(input.lines, "loss", "loss", highlights);
  add_last(input.lines, "eval_loss", "evaluation loss", highlights);
  add_highlight(input.lines, "reward", "reward", highlights);
  add_highlight(input.lines, "rewards/accuracies", "chosen over rejected", highlights);
  add_highlight(input.lines, "mean_token_accuracy", "token accuracy", highlights);
  if (!input.watched.empty()) {
    const auto& last = input.watched.back();
    highlights.push_back({.name = "ME layer",
                          .value = last.me_layer ? str_cat(*last.me_layer) : "none",
                          .remark = str_cat("at step ", last.step)});
  }
  return highlights;
}

std::string lead_of(const TrainingPageInput& input) {
  std::string text =
      str_cat(input.lines.size(), " lines of numbers, to step ", input.lines.back().step, ".");
  const std::size_t part = std::max<std::size_t>(1, input.lines.size() / 10);
  const double first = mean_of_metric(input.lines, "loss", 0, part);
  const double last =
      mean_of_metric(input.lines, "loss", input.lines.size() - part, input.lines.size());
  if (input.lines.size() > 1 && std::isfinite(first) && std::isfinite(last)) {
    text += str_cat(" The loss is ", number_text(first), " in the first tenth of them and ",
                    number_text(last), " in the last.");
  }
  return text;
}

Table numbers_table(const std::vector<MetricsLine>& lines) {
  constexpr std::size_t most_rows = 200;
  std::vector<std::string> names;
  for (const MetricsLine& line : lines) {
    for (const auto& [name, value] : line.metrics) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  Table table{.caption = lines.size() > most_rows ? str_cat("metrics.jsonl, ", most_rows,
                                                            " of its ", lines.size(), " lines")
                                                  : "metrics.jsonl",
              .header = {"step"},
              .numeric = {true},
              .rows = {}};
  table.header.insert(table.header.end(), names.begin(), names.end());
  table.numeric.resize(table.header.size(), true);
  const std::size_t count = std::min(lines.size(), most_rows);
  for (std::size_t i = 0; i < count; ++i) {
    const MetricsLine& line = lines[count == 1 ? 0 : i * (lines.size() - 1) / (count - 1)];
    std::map<std::string, double> values(line.metrics.begin(), line.metrics.end());
    std::vector<std::string> row = {str_cat(line.step)};
    for (const std::string& name : names) {
      row.push_back(values.contains(name) ? number_text(values.at(name)) : "");
    }
    table.rows.push_back(std::move(row));
  }
  return table;
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
  Page page{.kind = "onset train",
            .heading = input.name,
            .lead = {lead_of(input)},
            .highlights = highlights_of(input),
            .sections = {},
            .shared = OrderedJson::object()};
  Section curves{.id = "curves", .title = "Curves", .figures = curve_figures(input.lines)};
  if (!curves.figures.empty()) {
    curves.figures.front().tables.push_back(numbers_table(input.lines));
  }
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
  if (std::filesystem::exists(settings)) input.settings = read_file(settings, most_bytes);
  return render_page(training_page(input));
}

}  // namespace onset
