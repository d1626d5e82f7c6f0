#include "onset/train/data_report.h"

#include <vector>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/train/report_words.h"

namespace onset {
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
  if (equal > 0) {
    said += str_cat(" In ", counted(equal, "pair", "pairs"), " chosen and rejected are the same",
                    cut > 0 ? " (or are where they are cut)" : "", ": nothing is learnt from ",
                    equal == 1 ? "it." : "them.");
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
