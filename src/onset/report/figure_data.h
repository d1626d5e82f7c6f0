// Data of the kinds of figures in matrix_figures.js, as small as a picture allows. Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "onset/base/json.h"
#include "onset/massive/rigidity.h"

namespace onset {

// `value` with so many decimals; NaN and infinities become null.
[[nodiscard]] OrderedJson rounded(double value, int decimals);
[[nodiscard]] OrderedJson rounded(std::span<const double> values, int decimals);
[[nodiscard]] OrderedJson rounded(const std::vector<std::vector<double>>& rows, int decimals);

// A symmetric matrix by its lower triangle, the diagonal included: half of the page. Five decimals.
[[nodiscard]] OrderedJson triangle(const CosineMatrix& matrix);

// One line over the layers.
struct LineSeries {
  std::string name;
  const char* tone = "first";  // a colour of page.css
  const char* dash = "solid";  // "solid": with markers
  std::vector<double> values;  // [L]; NaN leaves a gap
};
// A line across all layers.
struct LineLevel {
  std::string name;
  double value = 0;
};
struct LinePlot {
  std::string title;  // of the vertical axis
  std::vector<LineSeries> series;
  std::vector<LineLevel> levels = {};
  std::optional<std::pair<double, double>> range = {};  // of the vertical axis; nothing: fitted
  bool logarithmic = false;                             // the vertical axis; then without `range`
};
[[nodiscard]] OrderedJson line_plot_json(const LinePlot& plot);

// Of a figure that marks the massive layers: `me_layer` and `last_massive_layer`, or null.
void mark_massive_layers(OrderedJson& data, std::optional<std::int64_t> me_layer,
                         std::optional<std::int64_t> last_massive_layer);

// "0.9999", "1.0000": number_text() has too few digits near 1. "undefined" for NaN.
[[nodiscard]] std::string four_decimals(double value);

// The mean of what is not NaN; NaN of nothing.
[[nodiscard]] double mean_of_finite(std::span<const double> values);

}  // namespace onset
