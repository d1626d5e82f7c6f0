// Who wrote the largest entries, as `onset scan` prints it.

#include <algorithm>

#include "onset/base/error.h"
#include "scan_report.h"
#include "text.h"

namespace onset::app {
namespace {

std::string entry_text(const std::string& what, const WrittenEntry& entry) {
  return what +
         wrap(str_cat("layer ", entry.layer, ", token ", entry.token, ", dim ", entry.dim, ": ",
                      compact(entry.resid_pre), ", attention ", part_text(entry.attn_out), ", FFN ",
                      part_text(entry.ffn_out), " = ", compact(entry.value)),
              80, 9) +
         "\n" + experts_text(entry.experts, entry.shared_out);
}

}  // namespace

std::string part_text(float value) { return (value > 0 ? "+" : "") + compact(value); }

std::string experts_text(const std::vector<ExpertPart>& experts,
                         const std::optional<float>& shared_out) {
  constexpr std::size_t most = 4;
  std::string text;
  const auto add = [&](const std::string& name, float value) {
    text += str_cat(text.empty() ? "" : ", ", name, " ", part_text(value));
  };
  for (std::size_t i = 0; i < std::min(experts.size(), most); ++i) {
    add(str_cat(i == 0 ? "expert " : "", experts[i].expert), experts[i].value);
  }
  if (experts.size() > most) text += str_cat(" and ", experts.size() - most, " more");
  if (shared_out) add("shared", *shared_out);
  return text.empty() ? text : "       FFN: " + text + "\n";
}

std::string written_text(const ModelScan& scan) {
  const auto& prompt = scan.result->prompts[shown_prompt(*scan.result)];
  std::string text;
  if (prompt.at_me_layer) text += entry_text("ME:      ", *prompt.at_me_layer);
  return text + entry_text("largest: ", prompt.largest) + "\n";
}

}  // namespace onset::app
