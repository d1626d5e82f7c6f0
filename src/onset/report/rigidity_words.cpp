#include "onset/report/rigidity_words.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "onset/base/error.h"

namespace onset {

std::string site_words(SiteKind site) {
  switch (site) {
    case SiteKind::resid_post:
      return "Residual stream";
    case SiteKind::attn_norm:
      return "Attention input";
    case SiteKind::k_pre:
      return "Keys";
    case SiteKind::v:
      return "Values";
    default:
      return std::string(site_kind_name(site));
  }
}

std::size_t layer_count(const RigidityFiguresInput& input) {
  return input.result.sites.front().token.prompts.size();
}

std::size_t pictured_layer(const RigidityFiguresInput& input) {
  return static_cast<std::size_t>(input.me_layer.value_or(0));
}

Stretch stretch_of(const RigidityFiguresInput& input) {
  const std::size_t layers = layer_count(input);
  Stretch result{.begin = 1, .end = layers};
  if (!input.me_layer || !input.last_massive_layer) return result;
  const auto begin = static_cast<std::size_t>(*input.me_layer) + 1;
  const auto end = std::min(static_cast<std::size_t>(*input.last_massive_layer) + 1, layers);
  if (begin < end) result = {.begin = begin, .end = end, .massive = true};
  return result;
}

std::vector<double> previous_cosines(const StateRigidity& state) {
  std::vector<double> cosines;
  for (std::size_t l = 0; l < state.mean_layers.size(); ++l) {
    cosines.push_back(l > 0 ? state.mean_layers[l][l - 1]
                            : std::numeric_limits<double>::quiet_NaN());
  }
  return cosines;
}

std::string beside_baseline(const RigidityFiguresInput& input, const SiteRigidity& site,
                            const std::function<double(const StateRigidity&)>& value,
                            std::string (*text)(double)) {
  std::string words = str_cat(text(value(site.token)), " for the ", input.token_name);
  if (site.baseline) {
    words += str_cat(", ", text(value(*site.baseline)), " for the ", input.baseline_name);
  }
  return words;
}

}  // namespace onset
