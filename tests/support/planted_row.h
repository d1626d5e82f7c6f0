// A super expert (Su et al. 2507.23279) planted into a mixture: one row of an expert's output
// matrix is made so that the first token gets a massive entry from it, and the others none.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "onset/checkpoint/safetensors.h"
#include "support/support.h"

namespace onset::testing {

// The prompt whose first token gets the entry, and where.
inline const std::vector<std::int64_t> planted_prompt{1, 17, 99, 4, 56, 23};
inline constexpr std::int64_t planted_layer = 1;
inline constexpr std::int64_t planted_dim = 7;
inline constexpr float planted_value = 40'000.0F;  // before the router's weight

// A row w with w . products[0] = value and w . products[i] = 0 for all others: the part of the
// first that is orthogonal to the others, scaled.
[[nodiscard]] inline std::vector<float> row_for_first(
    const std::vector<std::vector<float>>& products, double value) {
  using Vector = std::vector<double>;
  const auto dot = [](const Vector& a, const Vector& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
  };
  std::vector<Vector> basis;
  // Twice: once leaves rounding behind.
  const auto make_orthogonal = [&](Vector& vector) {
    for (int pass = 0; pass < 2; ++pass) {
      for (const Vector& unit : basis) {
        const double along = dot(vector, unit);
        for (std::size_t i = 0; i < vector.size(); ++i) vector[i] -= along * unit[i];
      }
    }
  };
  for (std::size_t i = 1; i < products.size(); ++i) {
    Vector vector(products[i].begin(), products[i].end());
    const double before = dot(vector, vector);
    make_orthogonal(vector);
    const double after = dot(vector, vector);
    if (after < 1e-12 * before) continue;
    for (double& x : vector) x /= std::sqrt(after);
    basis.push_back(std::move(vector));
  }
  const Vector first(products[0].begin(), products[0].end());
  Vector row = first;
  make_orthogonal(row);
  const double scale = value / dot(row, first);
  std::vector<float> result;
  for (const double x : row) result.push_back(static_cast<float>(scale * x));
  return result;
}

// Copies config.json and the weights of a mixture from `source`, with row `planted_dim` of the
// output matrix of the expert in `planted_layer` replaced.
inline void plant_row(const std::filesystem::path& source, const std::filesystem::path& target,
                      std::int64_t expert, const std::vector<float>& row) {
  std::filesystem::copy_file(source / "config.json", target / "config.json");
  const SafetensorsFile file = read_safetensors(source / "model.safetensors");
  const std::string layer = "layers." + std::to_string(planted_layer) + ".";
  const std::string tail = ".experts." + std::to_string(expert) + ".";
  int planted = 0;
  std::vector<NamedTensor> tensors;
  for (const TensorInfo& info : file.tensors) {
    const auto bytes = file.file.bytes().subspan(info.offset, info.bytes);
    tensors.push_back({info.name, info.dtype, info.shape, {bytes.begin(), bytes.end()}});
    const bool down =
        info.name.find(layer) != std::string::npos &&
        (info.name.ends_with(tail + "w2.weight") || info.name.ends_with(tail + "down_proj.weight"));
    if (!down) continue;
    ASSERT_EQ(info.shape[1], static_cast<std::int64_t>(row.size()));
    std::memcpy(tensors.back().data.data() + planted_dim * row.size() * sizeof(float), row.data(),
                row.size() * sizeof(float));
    ++planted;
  }
  ASSERT_EQ(planted, 1);
  write_safetensors(target / "model.safetensors", tensors);
}

}  // namespace onset::testing
