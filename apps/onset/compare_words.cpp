// The verdicts of `onset compare` in words.

#include <algorithm>
#include <cmath>

#include "compare_report.h"
#include "masked.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/wemask/mask_json.h"

namespace onset::app {
namespace {

// Rows whose verdict is told one by one; of more only those that stand.
constexpr std::size_t told_rows = 8;
constexpr std::size_t value_bytes = 60;

std::string better_word(const ComparisonRow& row) {
  const bool higher = row.result.difference > 0;
  if (!row.higher_is_better) return higher ? "higher" : "lower";
  const bool better = higher == *row.higher_is_better;
  return str_cat(higher ? "higher" : "lower", better ? ", which is better" : ", which is worse");
}

// "12 items": windows, where texts were cut into them.
std::string items_text(std::int64_t count, const ComparisonRow& row) {
  return counted(count, row.by_windows ? "window" : "item");
}

// "12 items rose and 9 fell".
std::string changes_text(const ComparisonRow& row) {
  return str_cat(items_text(row.result.wins, row), " rose and ", row.result.losses, " fell");
}

std::string p_words(const ComparisonRow& row) {
  std::string text = "p " + p_text(row.result.p);
  if (row.family > 1) {
    text += str_cat(", corrected for ", row.family, " tests ", p_text(row.holm_p));
  }
  return text;
}

// What may be there and not be seen.
std::string unseen_text(const ComparisonRow& row, const CompareReport& report) {
  const RowNumbers numbers(row);
  const auto& result = row.result;
  if (!result.detectable) return str_cat(" So few items (", result.n, ") cannot tell runs apart.");
  std::string text;
  if (result.interval) {
    text = str_cat(" The ", share_text(1 - report.options.paired.alpha),
                   " interval of the difference is ", numbers.interval(result.interval),
                   numbers.unit(), ";");
  }
  return str_cat(text, text.empty() ? " Less" : " less", " than ", numbers.size(*result.detectable),
                 numbers.unit(), " would often be missed by ", items_text(result.n, row),
                 " like these.");
}

std::string equal_text(const ComparisonRow& row, const CompareReport& report) {
  const auto& result = row.result;
  const double alpha = report.options.paired.alpha;
  // 0 of n changed: the largest share under which that is not rarer than alpha.
  const double share = 1 - std::pow(alpha, 1.0 / static_cast<double>(result.n));
  return str_cat(row_name(row), ": every one of ", items_text(result.n, row),
                 " scored the same in both runs. Of all such items fewer than ",
                 share_text(std::ceil(share * 1e4) / 1e4), " change (at ", share_text(1 - alpha),
                 " confidence).");
}

std::string verdict(const ComparisonRow& row, const CompareReport& report) {
  const RowNumbers numbers(row);
  const auto& result = row.result;
  const double alpha = report.options.paired.alpha;
  if (result.wins + result.losses == 0) return equal_text(row, report);
  const std::string name = row_name(row);
  const bool passes = result.p <= alpha;
  if (row.holm_p <= alpha) {
    const std::string range = result.interval ? str_cat(" (", share_text(1 - alpha), " interval ",
                                                        numbers.interval(result.interval), ")")
                                              : "";
    return str_cat(name, ": B is ", numbers.size(std::abs(result.difference)), numbers.unit(), " ",
                   better_word(row), range, ": ", changes_text(row),
                   ", which is more uneven than chance would make it (", p_words(row), ").");
  }
  return str_cat(name, ": no difference shown. ", changes_text(row), " (", p_words(row), ")",
                 passes ? ": a single test would pass, one of so many does not." : ".",
                 unseen_text(row, report));
}

std::string value_text(const Json& value) {
  if (value.is_null()) return "none";
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text.size() > value_bytes) text = text.substr(0, value_bytes) + "..";
  return printable(text, true);
}

std::string mask_text(const Json& mask) {
  if (mask.is_null()) return "none";
  try {
    return mask_words(parse_mask(mask, "wemask"));
  } catch (const Error&) {
    return value_text(mask);  // of another version, or another program's
  }
}

}  // namespace

std::string row_name(const ComparisonRow& row) {
  const std::string filter = row.filter == "none" || row.filter.empty() ? "" : ", " + row.filter;
  return printable(str_cat(row.task, filter, ", ", row.metric), true);
}

std::vector<std::string> compare_paragraphs(const CompareReport& report) {
  std::vector<const ComparisonRow*> rows;
  std::size_t members = 0;
  std::vector<std::string> standing_members;
  for (const auto& row : report.comparison.rows) {
    if (row.member_of.empty()) {
      rows.push_back(&row);
      continue;
    }
    ++members;
    if (row.holm_p <= report.options.paired.alpha) {
      const RowNumbers numbers(row);
      standing_members.push_back(str_cat(row_name(row), " (",
                                         numbers.difference(row.result.difference), ", p ",
                                         p_text(row.holm_p), ")"));
    }
  }
  std::vector<std::string> paragraphs;
  std::size_t left_out = 0;
  for (const ComparisonRow* row : rows) {
    if (rows.size() > told_rows && row->holm_p > report.options.paired.alpha) {
      ++left_out;
    } else {
      paragraphs.push_back(verdict(*row, report));
    }
  }
  if (left_out > 0) {
    paragraphs.push_back(str_cat("The other ", left_out, " of ", rows.size(),
                                 " rows show no difference after correcting for ", rows.size(),
                                 " tests."));
  }
  if (members > 0) {
    paragraphs.push_back(
        standing_members.empty()
            ? str_cat("Of the ", members, " rows within groups none shows a difference after ",
                      "correcting for as many tests.")
            : str_cat("Of the ", members, " rows within groups, after correcting for as many ",
                      "tests, ", standing_members.size() == 1 ? "one shows" : "these show",
                      " a difference: ", join(standing_members, "; "), "."));
  }
  const auto stands = [&](const ComparisonRow& row) {
    return row.holm_p <= report.options.paired.alpha;
  };
  const auto& compared = report.comparison.rows;
  const std::size_t settings = report.comparison.settings.size();
  if (settings > 1 && std::any_of(compared.begin(), compared.end(), stands)) {
    paragraphs.push_back(str_cat("The runs differ in ", settings,
                                 " settings (above); the tests do ",
                                 "not tell which of them made the difference."));
  }
  return paragraphs;
}

std::vector<std::string> setting_paragraphs(const CompareReport& report) {
  std::vector<std::string> paragraphs;
  for (const auto& setting : report.comparison.settings) {
    const bool mask = setting.name == "wemask";
    paragraphs.push_back(str_cat(printable(setting.name, true), ": A ",
                                 mask ? mask_text(setting.a) : value_text(setting.a), "; B ",
                                 mask ? mask_text(setting.b) : value_text(setting.b)));
  }
  return paragraphs;
}

}  // namespace onset::app
