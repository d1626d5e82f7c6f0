// What the captions of the rigidity figures share. Inside the report room; torch-free.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "onset/report/rigidity_figures.h"

namespace onset {

[[nodiscard]] std::string site_words(SiteKind site);  // "Residual stream"
[[nodiscard]] std::size_t layer_count(const RigidityFiguresInput& input);
// The ME layer, else the first.
[[nodiscard]] std::size_t pictured_layer(const RigidityFiguresInput& input);

// Layers [begin, end) that are compared with the one before: the massive ones after the ME layer,
// else all but the first.
struct Stretch {
  std::size_t begin = 1;
  std::size_t end = 1;
  bool massive = false;
};
[[nodiscard]] Stretch stretch_of(const RigidityFiguresInput& input);

// [L] the cosine with the layer before; NaN for the first.
[[nodiscard]] std::vector<double> previous_cosines(const StateRigidity& state);

// "0.9999 for the massive token, 0.9488 for the baseline token".
[[nodiscard]] std::string beside_baseline(const RigidityFiguresInput& input,
                                          const SiteRigidity& site,
                                          const std::function<double(const StateRigidity&)>& value,
                                          std::string (*text)(double));

}  // namespace onset
