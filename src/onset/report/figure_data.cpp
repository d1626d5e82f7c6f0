#include "onset/report/figure_data.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

namespace onset {
namespace {

constexpr int cosine_decimals = 5;
constexpr int line_decimals = 5;

}  // namespace

OrderedJson rounded(double value, int decimals) {
  if (!std::isfinite(value)) return nullptr;
  const double unit = std::pow(10.0, decimals);
  const double result = std::round(value * unit) / unit;
  if (!std::isfinite(result)) return value;
  return result == 0 ? 0.0 : result;  // no -0.0
}

OrderedJson rounded(std::span<const double> values, int decimals) {
  OrderedJson row = OrderedJson::array();
  for (const double value : values) row.push_back(rounded(value, decimals));
  return row;
}

OrderedJson rounded(const std::vector<std::vector<double>>& rows, int decimals) {
  OrderedJson result = OrderedJson::array();
  for (const auto& values : rows) result.push_back(rounded(std::span(values), decimals));
  return result;
}

OrderedJson triangle(const CosineMatrix& matrix) {
  OrderedJson rows = OrderedJson::array();
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    rows.push_back(rounded(std::span(matrix[i]).first(i + 1), cosine_decimals));
  }
  return rows;
}

OrderedJson line_plot_json(const LinePlot& plot) {
  OrderedJson series = OrderedJson::array();
  for (const LineSeries& line : plot.series) {
    series.push_back({{"name", line.name},
                      {"tone", line.tone},
                      {"dash", line.dash},
                      {"values", rounded(std::span(line.values), line_decimals)}});
  }
  OrderedJson levels = OrderedJson::array();
  for (const LineLevel& level : plot.levels) {
    levels.push_back({{"name", level.name}, {"value", level.value}});
  }
  OrderedJson range = nullptr;
  if (plot.range) range = OrderedJson::array({plot.range->first, plot.range->second});
  return {{"title", plot.title},
          {"series", std::move(series)},
          {"levels", std::move(levels)},
          {"range", std::move(range)},
          {"logarithmic", plot.logarithmic}};
}

void mark_massive_layers(OrderedJson& data, std::optional<std::int64_t> me_layer,
                         std::optional<std::int64_t> last_massive_layer) {
  data["me_layer"] = me_layer ? OrderedJson(*me_layer) : OrderedJson(nullptr);
  data["last_massive_layer"] =
      last_massive_layer ? OrderedJson(*last_massive_layer) : OrderedJson(nullptr);
}

std::string four_decimals(double value) {
  if (std::isnan(value)) return "undefined";
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.4f", value);
  return text.data();
}

double mean_of_finite(std::span<const double> values) {
  double sum = 0;
  std::int64_t count = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value;
    ++count;
  }
  return count > 0 ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace onset
