#include "onset/report/scan_words.h"

#include <algorithm>
#include <cmath>

#include "onset/base/error.h"
#include "onset/report/html.h"

namespace onset {
namespace {

float magnitude(const PromptScan& prompt, std::int64_t layer) {
  return std::fabs(prompt.layers[static_cast<std::size_t>(layer)].largest.value);
}

// "at 23,354 to 23,738": the token's largest entry over the layers begin .. end - 1.
std::string height_words(const std::vector<float>& heights, std::size_t begin, std::size_t end) {
  const auto first = heights.begin();
  const auto [low, high] = std::minmax_element(first + static_cast<std::ptrdiff_t>(begin),
                                               first + static_cast<std::ptrdiff_t>(end));
  const auto from = number_text(*low);
  const auto to = number_text(*high);
  return from == to ? "at " + to : str_cat("at ", from, " to ", to);
}

}  // namespace

std::string rule_words(const ScanOptions& options) {
  const std::string ratio =
      str_cat(number_text(options.min_ratio), " times the median of its layer");
  return options.rule == ScanRule::absolute
             ? str_cat("above ", number_text(options.min_abs), " and above ", ratio)
             : str_cat("above ", ratio, ", for a quarter of the layers in a row");
}

std::string jump_words(const PromptScan& prompt, std::int64_t layer) {
  const auto& there = prompt.layers[static_cast<std::size_t>(layer)];
  const std::string size = str_cat(number_text(std::fabs(there.largest.value)), ", ",
                                   number_text(there.ratio()), " times the median");
  if (layer == 0) return str_cat("is ", size, " already after layer 0");
  return str_cat("goes from ", number_text(magnitude(prompt, layer - 1)), " after layer ",
                 layer - 1, " to ", size, ", after layer ", layer);
}

std::string thinned_words(const BlockMaxima& maxima, std::string_view row_name) {
  const auto widest = [](const std::vector<Block>& blocks) {
    std::int64_t size = 1;
    for (const Block& block : blocks) size = std::max(size, block.size());
    return size;
  };
  const auto rows = widest(maxima.rows);
  const auto columns = widest(maxima.columns);
  if (rows == 1 && columns == 1) return {};
  std::string block = columns > 1 ? str_cat(columns, " dimensions") : std::string("1 dimension");
  if (rows > 1) block = str_cat("up to ", rows, " ", row_name, " x ") + block;
  return str_cat(" Each point is the largest entry of a block of ", block,
                 ", so no spike is lost; pointing at it tells which entry that is.");
}

std::string flatness_words(const BlockMaxima& maxima) {
  float largest = 0;
  for (const auto& cell : maxima.cells) largest = std::max(largest, cell.value);
  std::int64_t high = -1;  // without the largest itself
  for (const auto& cell : maxima.cells) high += cell.value >= largest / 20 ? 1 : 0;
  const auto others = std::ssize(maxima.cells) - 1;
  if (others < 1 || high < 0) return {};
  if (high == 0) return ", and at this scale all else lies flat";
  return str_cat("; of the other ", number_text(static_cast<double>(others)), " points ",
                 number_text(static_cast<double>(high)), high == 1 ? " reaches" : " reach",
                 " a twentieth of it",
                 high * 100 < others ? ", and all else lies flat at this scale" : "");
}

std::string wall_words(const PromptScan& prompt, const PromptStates& states) {
  constexpr float step = 2;  // as a stage
  const auto heights = row_maxima(states.layers);
  if (!prompt.me_layer) {
    std::string text =
        "A massive activation would be a wall that rises in one layer and stays; here no entry "
        "passes the rule";
    if (!heights.empty()) {
      const auto most = std::max_element(heights.begin(), heights.end());
      text += str_cat(", and the token's largest is ", number_text(*most), ", after layer ",
                      most - heights.begin());
    }
    return text + ".";
  }
  if (heights.empty()) return "A massive activation is a wall that rises in one layer and stays.";
  const auto born = static_cast<std::size_t>(*prompt.me_layer);
  const auto last = static_cast<std::size_t>(prompt.last_massive_layer.value_or(*prompt.me_layer));
  std::string text;
  if (born == 0) {
    text = str_cat("Its largest entry is ", number_text(heights[0]), " already after layer 0");
  } else {
    const float factor = heights[born] / heights[born - 1];
    text = str_cat("Its largest entry goes from ", number_text(heights[born - 1]), " after layer ",
                   born - 1, " to ", number_text(heights[born]), " after layer ", born);
    text += factor >= step ? str_cat(", ", number_text(std::round(factor * 10) / 10),
                                     " times as much: the wall of a massive activation")
                           : std::string(": it passes the rule there without a step of its own");
  }
  if (last > born) {
    text += str_cat("; the residual stream carries it on ", height_words(heights, born, last + 1),
                    " up to layer ", last);
  }
  if (last + 1 == heights.size()) return text + ", the end of the model.";
  const float after = heights[last + 1];
  text += after * step <= heights[last]
              ? str_cat(", and layer ", last + 1, " takes it down to ", number_text(after))
              : str_cat(", and after layer ", last + 1, " it is ", number_text(after),
                        ", which the rule no longer calls massive");
  return text + ".";
}

}  // namespace onset
