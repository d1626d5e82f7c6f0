// The table of `onset compare`, at most 80 columns wide.

#include <algorithm>
#include <cmath>

#include "compare_report.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"

namespace onset::app {
namespace {

constexpr std::size_t name_width = 12;
constexpr std::size_t listed_members = 12;

std::string without_zero(std::string text) {
  const std::size_t at = text.find_first_not_of("+-");
  if (at != std::string::npos && text.substr(at).starts_with("0.")) text.erase(at, 1);
  return text;
}

std::string with_sign(const std::string& text, double value) {
  const bool zero = text.find_first_not_of("-0.") == std::string::npos;
  return value > 0 && !zero ? "+" + text : text;
}

std::string run_text(const char* name, const EvaluationRun& run, const TextStyle& style) {
  std::string text = run.files.given;
  const auto& results = run.results;
  if (results.is_object() && results.contains("model_name") && results["model_name"].is_string()) {
    text += ": " + results["model_name"].get<std::string>();
  }
  if (run.files.results.empty()) text += " (no results_*.json: settings unknown)";
  return pad_right(name, 9) + wrap(printable(text, style.utf8), 80, 9) + "\n";
}

// "12 items only in A and 3 only in B are left out".
std::string pairing_notes(const TaskPairing& pairing) {
  std::vector<std::string> parts;
  if (pairing.only_a > 0) parts.push_back(counted(pairing.only_a, "item") + " only in A left out");
  if (pairing.only_b > 0) parts.push_back(counted(pairing.only_b, "item") + " only in B left out");
  if (pairing.other_prompts > 0) {
    parts.push_back(
        str_cat(pairing.other_prompts, " of ", pairing.items, " prompts differ between the runs"));
  }
  if (pairing.other_documents > 0) {
    parts.push_back(str_cat(pairing.other_documents, " of ", pairing.items,
                            " documents have another hash, and were paired by number"));
  } else if (!pairing.hashed) {
    parts.emplace_back(
        "not all documents have hashes in both runs, and those were paired by number alone");
  }
  return join(parts, "; ");
}

std::string header_text(const CompareReport& report, const TextStyle& style) {
  std::string text = run_text("A", report.a, style) + run_text("B", report.b, style);
  const bool known = !report.a.files.results.empty() && !report.b.files.results.empty();
  auto settings = setting_paragraphs(report);
  if (settings.empty()) {
    settings = {known ? "nothing that the results record" : "unknown without the results of both"};
  }
  for (std::size_t i = 0; i < settings.size(); ++i) {
    text += pad_right(i == 0 ? "differs" : "", 9) + wrap(settings[i], 80, 9) + "\n";
  }
  std::vector<std::string> notes = report.a.files.notes;
  notes.insert(notes.end(), report.b.files.notes.begin(), report.b.files.notes.end());
  const auto& comparison = report.comparison;
  if (!comparison.only_a.empty()) notes.push_back("only in A: " + join(comparison.only_a, ", "));
  if (!comparison.only_b.empty()) notes.push_back("only in B: " + join(comparison.only_b, ", "));
  for (const auto& pairing : comparison.pairings) {
    const auto note = pairing_notes(pairing);
    if (!note.empty()) notes.push_back(pairing.task + ": " + note);
  }
  notes.insert(notes.end(), comparison.notes.begin(), comparison.notes.end());
  for (std::size_t i = 0; i < notes.size(); ++i) {
    text +=
        pad_right(i == 0 ? "note" : "", 9) + wrap(printable(notes[i], style.utf8), 80, 9) + "\n";
  }
  return text + "\n";
}

std::string heading(const ComparisonRow& row) {
  std::string text = row.task;
  if (row.filter != "none" && !row.filter.empty()) text += ", " + row.filter;
  if (!row.group_tasks.empty()) text += str_cat(" (", row.group_tasks.size(), " tasks, by items)");
  if (!row.member_of.empty()) text += ", of " + row.member_of;
  return text;
}

std::string row_text(const ComparisonRow& row, const TextStyle& style) {
  const RowNumbers numbers(row);
  const auto& result = row.result;
  const std::string name = "  " + printable(row.metric, style.utf8);
  std::string text = pad_right(name, name_width);
  if (display_width(name) > name_width) text = name + "\n" + std::string(name_width, ' ');
  return text + column(str_cat(result.n), 6) + column(numbers.score(result.a), 7) +
         column(numbers.score(result.b), 7) + column(numbers.difference(result.difference), 7) +
         column(numbers.interval(result.interval), 15) +
         column(str_cat(result.wins, "/", result.losses), 8) + column(p_text(result.p), 6) +
         column(p_text(row.holm_p), 6) +
         column(result.detectable ? numbers.size(*result.detectable) : "-", 6) + "\n";
}

std::string rows_text(const CompareReport& report, const TextStyle& style) {
  const std::string level = share_text(1 - report.options.paired.alpha) + " interval";
  std::string text = pad_right("", name_width) + column("items", 6) + column("A", 7) +
                     column("B", 7) + column("B - A", 7) + column(level, 15) + column("+/-", 8) +
                     column("p", 6) + column("Holm", 6) + column("finds", 6) + "\n";
  std::size_t members = 0;
  for (const auto& row : report.comparison.rows) {
    if (!row.member_of.empty()) ++members;
  }
  const bool show_members = report.members || members <= listed_members;
  std::string last;
  for (const auto& row : report.comparison.rows) {
    if (!show_members && !row.member_of.empty() && row.group_tasks.empty()) continue;
    const auto name = heading(row);
    if (name != last) text += fit(printable(name, style.utf8), 80, style.utf8) + "\n";
    last = name;
    text += row_text(row, style);
  }
  if (!show_members) text += "(--members shows the single tasks of groups too)\n";
  return text + "\n";
}

std::string legend(const CompareReport& report) {
  bool binary = false;
  bool other = false;
  bool nll = false;
  bool windows = false;
  for (const auto& row : report.comparison.rows) {
    windows = windows || row.by_windows;
    binary = binary || row.result.binary;
    other = other || !row.result.binary;
    nll = nll || row.is_nll;
  }
  std::string text = "+/-: items with a higher and with a lower score in B; ";
  if (binary) text += "right or wrong: scores in points (percent), p by McNemar's exact test; ";
  if (other) text += "other scores: as they are, p by flipping the signs of differences; ";
  if (nll) text += "perplexities as negative log-likelihood in nats a unit; ";
  if (windows) text += "items of texts are their windows; ";
  text += str_cat("Holm: p corrected for the number of rows, those within groups by themselves; ",
                  "finds: the smallest true difference that so many items, changing so much, show ",
                  "with probability ", share_text(report.options.paired.power),
                  "; formulas: docs/compare.md");
  return wrap(text, 80, 0) + "\n\n";
}

std::string one_line(const std::string& text, const TextStyle& style) {
  std::string line = text;
  std::replace(line.begin(), line.end(), '\n', ' ');
  return fit(printable(line, style.utf8), 66, style.utf8);
}

std::string item_text(const ShownItem& item, const TextStyle& style) {
  const auto row = [&](const char* name, const std::string& text) {
    return text.empty() ? ""
                        : pad_right("", 2) + pad_right(name, 10) + one_line(text, style) + "\n";
  };
  const auto answer = [&](double score, const std::string& text) {
    const std::string grade = item.binary ? (score == 1 ? "right" : "wrong") : compact(score);
    return text.empty() ? grade : grade + " " + text;
  };
  return str_cat("document ", item.doc, "\n") + row("question", item.answer_a.question) +
         row("target", item.answer_a.target) + row("A", answer(item.a, item.answer_a.answer)) +
         row("B", answer(item.b, item.answer_b.answer));
}

std::string items_text(const CompareReport& report, const TextStyle& style) {
  std::string text;
  for (const auto& shown : report.shown) {
    const auto& row = report.comparison.rows[shown.row];
    const auto changed = row.result.wins + row.result.losses;
    text += wrap(str_cat("changed: ", row_name(row), ": ", changed, " of ", row.result.n,
                         row.by_windows ? " windows, texts " : " items, ", shown.items.size(),
                         " shown"),
                 80, 0) +
            "\n";
    for (const auto& item : shown.items) text += item_text(item, style);
    text += "\n";
  }
  return text;
}

}  // namespace

RowNumbers::RowNumbers(const ComparisonRow& row) : points_(row.result.binary), nll_(row.is_nll) {
  if (points_) return;
  const auto& interval = row.result.interval;
  const double width = interval ? interval->high - interval->low : std::abs(row.result.difference);
  const double scale = width > 0 ? width : std::abs(row.result.a);
  // Two digits of what the interval leaves open.
  if (scale > 0) decimals_ = std::clamp(1 - static_cast<int>(std::floor(std::log10(scale))), 0, 6);
}

std::string RowNumbers::score(double value) const {
  return points_ ? fixed(100 * value, 2) : fixed(value, decimals_);
}

std::string RowNumbers::size(double value) const { return score(value); }

std::string RowNumbers::difference(double value) const { return with_sign(score(value), value); }

std::string RowNumbers::interval(const std::optional<Interval>& interval) const {
  if (!interval) return "-";
  const auto end = [&](double value) {
    if (points_) return with_sign(fixed(100 * value, 1), value);
    return without_zero(with_sign(fixed(value, decimals_), value));
  };
  return end(interval->low) + " to " + end(interval->high);
}

const char* RowNumbers::unit() const {
  if (points_) return " points";
  return nll_ ? " nats" : "";
}

std::string share_text(double share) { return shortest(std::round(share * 1e6) / 1e4) + " %"; }

std::string p_text(double p) {
  if (std::isnan(p)) return "-";
  if (p < 0.001) return "<.001";
  if (p > 0.9995) return "1";
  return without_zero(fixed(p, 3));
}

std::string compare_text(const CompareReport& report, const TextStyle& style) {
  std::string text = header_text(report, style) + rows_text(report, style) + legend(report);
  for (const auto& paragraph : compare_paragraphs(report)) text += wrap(paragraph, 80, 0) + "\n\n";
  text += items_text(report, style);
  while (text.ends_with("\n\n")) text.pop_back();
  return text;
}

}  // namespace onset::app
