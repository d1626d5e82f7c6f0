#include "onset/train/data_report.h"

#include <cmath>
#include <vector>

#include "onset/base/error.h"
#include "onset/base/strings.h"

namespace onset {
namespace {

// 1234567 as "1,234,567".
std::string grouped(std::int64_t count) {
  std::string digits = std::to_string(count);
  constexpr std::size_t group = 3;
  for (std::size_t at = digits.size(); at > group; at -= group) digits.insert(at - group, ",");
  return digits;
}

std::string counted(std::int64_t count, std::string_view singular, std::string_view plural) {
  return str_cat(grouped(count), " ", count == 1 ? singular : plural);
}

// One digit behind the point: "41.3".
std::string percent(std::int64_t part, std::int64_t whole) {
  constexpr std::int64_t scale = 1000;
  const auto tenths = std::llround(static_cast<double>(part) / static_cast<double>(whole) * scale);
  return str_cat(tenths / 10, ".", tenths % 10);
}

}  // namespace

std::string DataReport::text() const {
  std::string said =
      str_cat(where, ": ", counted(rows, "row", "rows"), ", ", grouped(kept), " kept.");
  if (dropped > 0) {
    said += str_cat(" ", counted(dropped, "row is", "rows are"),
                    " left out: nothing to train is left of it at this length.");
  }
  if (cut > 0) {
    said += str_cat(" ", counted(cut, "row is", "rows are"), " cut, by ",
                    counted(tokens_cut, "token", "tokens"), " in all.");
  }
  if (joined > 0) {
    said += str_cat(" In ", counted(joined, "row", "rows"),
                    " the end of the prompt is other tokens when the completion follows it; the "
                    "completion begins where the two part.");
  }
  if (straddling > 0) {
    said +=
        str_cat(" ", counted(straddling, "trained token also holds", "trained tokens also hold"),
                " bytes of what is not trained.");
  }
  if (tokens > 0 && trained == 0) {
    said += str_cat(" ", counted(tokens, "token", "tokens"), "; the longest example has ",
                    grouped(longest), ".");
  } else if (tokens > 0) {
    said +=
        str_cat(" ", percent(trained, tokens), " % of ", counted(tokens, "token", "tokens"),
                " are trained; the longest example has ", counted(longest, "token", "tokens"), ".");
  }
  if (!unread.empty()) {
    said += str_cat(" Columns that are not read: ",
                    join(std::vector<std::string>(unread.begin(), unread.end()), ", "), ".");
  }
  return said;
}

}  // namespace onset
