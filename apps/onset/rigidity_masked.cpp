// What a mask changes in rigidity: the tables and the words.

#include <algorithm>
#include <cmath>

#include "masked.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "rigidity_report.h"

namespace onset::app {
namespace {

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

bool same(const RigidityCell& a, const RigidityCell& b) {
  return same(a.previous, b.previous) && same(a.pairs, b.pairs) && same(a.rank, b.rank);
}

// Layers at the beginning whose cells are equal in both runs.
std::size_t equal_layers(const ModelRigidity& rigidity) {
  const auto& sites = rigidity.result.sites;
  const std::size_t layers = sites.front().token.prompts.size();
  for (std::size_t l = 0; l < layers; ++l) {
    for (std::size_t s = 0; s < sites.size(); ++s) {
      const auto& masked = rigidity.masked->sites[s].token;
      if (!same(rigidity_cell(sites[s].token, l), rigidity_cell(masked, l))) return l;
    }
  }
  return layers;
}

std::string with_sign(double value, int decimals) {
  const auto text = fixed(value, decimals);
  const bool zero = text.find_first_not_of("-0.") == std::string::npos;
  return value > 0 && !zero ? "+" + text : text;
}

std::string table(const ModelRigidity& rigidity, bool difference) {
  const auto& sites = rigidity.result.sites;
  const std::size_t layers = sites.front().token.prompts.size();
  const std::size_t equal = equal_layers(rigidity);
  std::string text = rigidity_heading(sites);
  if (equal > 0) {
    text += pad_left(equal == 1 ? "0" : str_cat("0-", equal - 1), 5) + "  equal in both runs\n";
  }
  for (std::size_t l = equal; l < layers; ++l) {
    const bool born = rigidity.scan.me_layer == static_cast<std::int64_t>(l);
    text += (born ? "ME" : "  ") + pad_left(str_cat(l), 3);
    for (std::size_t s = 0; s < sites.size(); ++s) {
      const auto unmasked = rigidity_cell(sites[s].token, l);
      auto cell = rigidity_cell(rigidity.masked->sites[s].token, l);
      if (difference) {
        cell = {.previous = cell.previous - unmasked.previous,
                .pairs = cell.pairs - unmasked.pairs,
                .rank = cell.rank - unmasked.rank};
      }
      text += rigidity_cells_text(cell, difference ? with_sign : fixed);
    }
    text += "\n";
  }
  return text + "\n";
}

// Over the layers that the mask is in; NaN is passed over.
double mean_of(const StateRigidity& state, const MaskSpec& mask, double RigidityCell::*field) {
  double sum = 0;
  double count = 0;
  for (std::int64_t l = mask.from_layer; l <= mask.to_layer; ++l) {
    const double value = rigidity_cell(state, static_cast<std::size_t>(l)).*field;
    if (std::isnan(value)) continue;
    sum += value;
    count += 1;
  }
  return count > 0 ? sum / count : std::nan("");
}

}  // namespace

std::vector<std::string> rigidity_masked_paragraphs(const ModelRigidity& rigidity) {
  const auto& mask = *rigidity.mask;
  std::vector<std::string> sites;
  for (std::size_t s = 0; s < rigidity.result.sites.size(); ++s) {
    const auto& unmasked = rigidity.result.sites[s];
    const auto& masked = rigidity.masked->sites[s];
    const auto mean = [&](const SiteRigidity& site, double RigidityCell::*field, int decimals) {
      return fixed(mean_of(site.token, mask, field), decimals);
    };
    sites.push_back(str_cat(site_kind_name(unmasked.site), " cosine between prompts ",
                            mean(unmasked, &RigidityCell::pairs, 4), " and ",
                            mean(masked, &RigidityCell::pairs, 4), ", effective rank ",
                            mean(unmasked, &RigidityCell::rank, 2), " and ",
                            mean(masked, &RigidityCell::rank, 2)));
  }
  return {str_cat("Means over the masked layers ", mask.from_layer, " to ", mask.to_layer,
                  ", without and with the mask: ", join(sites, "; "),
                  ". The mask takes dims from the attention input, so that site, keys and values "
                  "change by it directly, and the residual stream only by what attention then "
                  "writes."),
          masked_caution()};
}

std::string rigidity_masked_text(const ModelRigidity& rigidity) {
  const std::string token = rigidity.named.token ? "the token" : "the massive token";
  return masked_heading(*rigidity.mask) + token + ", masked\n" + table(rigidity, false) + token +
         ", masked less unmasked\n" + table(rigidity, true) +
         wrap(join(rigidity_masked_paragraphs(rigidity), "\n"), 80, 0) + "\n";
}

}  // namespace onset::app
