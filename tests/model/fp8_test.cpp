// A whole model with FP8 weights and their scales equals the one made from the dequantised weights;
// scales that are missing, of another shape or not finite are errors.
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "onset/model/decoder.h"
#include "support/fixture_copy.h"
#include "support/support.h"
#include "support/tensors.h"

namespace onset::testing {
namespace {

// OCP 8-bit floating point, e4m3: bias 7, no infinities, 448 the largest.
double e4m3_value(unsigned code) {
  const unsigned exponent = code >> 3U & 15U;
  const double significand = (code & 7U) / 8.0 + (exponent > 0 ? 1.0 : 0.0);
  const double size = std::ldexp(significand, std::max(static_cast<int>(exponent), 1) - 7);
  return code >= 128 ? -size : size;
}

// Codes 0 to 126 are in the order of their values.
unsigned nearest_e4m3(double value) {
  static const std::vector<double> table = [] {
    std::vector<double> values;
    for (unsigned code = 0; code < 127; ++code) values.push_back(e4m3_value(code));
    return values;
  }();
  const double size = std::fabs(value);
  auto code =
      static_cast<unsigned>(std::lower_bound(table.begin(), table.end(), size) - table.begin());
  if (code == table.size() || (code > 0 && size - table[code - 1] < table[code] - size)) --code;
  return value < 0 ? code + 128 : code;
}

// As DeepSeek-V3's files: all projections, but neither the routers nor the embedding and the head.
bool is_projection(const std::string& name) {
  return name.ends_with("_proj.weight") || name.ends_with("kv_a_proj_with_mqa.weight");
}

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

struct Blocks {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

// The fixture deepseek_v3 with FP8 projections, and with what they stand for as float32.
struct QuantisedModel {
  Toy dequantised = copy_of_fixture("deepseek_v3");
  OrderedJson config = dequantised.config;
  std::vector<NamedTensor> tensors;

  // A scale for each block; of all rows or columns where a size is 0.
  explicit QuantisedModel(Blocks block, const std::string& suffix = ".weight_scale_inv") {
    config["quantization_config"] = {{"quant_method", "fp8"}, {"fmt", "e4m3"}};
    if (block.rows > 0 && block.columns > 0) {
      config["quantization_config"]["weight_block_size"] = {block.rows, block.columns};
    }
    for (auto& [name, values] : dequantised.values) {
      const std::vector<std::int64_t>& shape = dequantised.shapes.at(name);
      if (!is_projection(name)) {
        tensors.push_back({name, DType::f32, shape, bytes_of(values)});
        continue;
      }
      const std::int64_t height = block.rows > 0 ? block.rows : shape[0];
      const std::int64_t width = block.columns > 0 ? block.columns : shape[1];
      const std::int64_t down = (shape[0] + height - 1) / height;
      const std::int64_t across = (shape[1] + width - 1) / width;
      std::vector<float> scales(static_cast<std::size_t>(down * across), 0.0F);
      const auto scale_at = [&](std::size_t i) -> float& {
        const auto row = static_cast<std::int64_t>(i) / shape[1];
        const auto column = static_cast<std::int64_t>(i) % shape[1];
        return scales[static_cast<std::size_t>(row / height * across + column / width)];
      };
      for (std::size_t i = 0; i < values.size(); ++i) {
        scale_at(i) = std::max(scale_at(i), std::fabs(values[i]) / 448.0F);
      }
      std::vector<unsigned char> codes;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const unsigned code = nearest_e4m3(values[i] / scale_at(i));
        codes.push_back(static_cast<unsigned char>(code));
        values[i] = static_cast<float>(e4m3_value(code)) * scale_at(i);
      }
      tensors.push_back({name, DType::f8_e4m3, shape, bytes_of(codes)});
      const std::string stem = name.substr(0, name.rfind(".weight"));
      tensors.push_back({stem + suffix, DType::f32, {down, across}, bytes_of(scales)});
    }
  }

  NamedTensor& tensor(const std::string& name) {
    const auto found = std::find_if(tensors.begin(), tensors.end(),
                                    [&](const NamedTensor& each) { return each.name == name; });
    if (found == tensors.end()) throw std::runtime_error("no tensor " + name);
    return *found;
  }
  void write(const std::filesystem::path& folder) const {
    write_file_atomically(folder / "config.json", config.dump(1));
    write_safetensors(folder / "model.safetensors", tensors);
  }
};

class Fp8Model : public ::testing::Test {
 protected:
  static at::Tensor logits_of(const std::filesystem::path& path, const ModelOptions& options = {}) {
    const std::vector<SequenceInput> batch{{.ids = {1, 7, 9, 40, 99, 3, 12, 5}}};
    return Model::open(path, options).decoder().forward(batch, LogitRows::all).logits;
  }
  static void expect_dequantised(const QuantisedModel& model) {
    const TemporaryFolder quantised;
    const TemporaryFolder plain;
    model.write(quantised.path());
    model.dequantised.write(plain.path());
    EXPECT_TRUE(
        close(logits_of(quantised.path()), logits_of(plain.path()), {.atol = 1e-5, .rtol = 1e-5}));
    const ModelOptions exact{Compute::f64, Residency::resident};
    EXPECT_TRUE(close(logits_of(quantised.path(), exact), logits_of(plain.path(), exact),
                      {.atol = 1e-12, .rtol = 1e-12}));
  }
  static std::string error(const QuantisedModel& model) {
    const TemporaryFolder folder;
    model.write(folder.path());
    return error_of([&] { static_cast<void>(Model::open(folder.path())); });
  }
  static constexpr const char* down = "model.layers.1.mlp.experts.3.down_proj";

  c10::InferenceMode inference_;
};

TEST_F(Fp8Model, BlocksOf128) { expect_dequantised(QuantisedModel({128, 128})); }
TEST_F(Fp8Model, BlocksThatTheMatricesCutShort) { expect_dequantised(QuantisedModel({20, 14})); }
TEST_F(Fp8Model, OneScaleARow) { expect_dequantised(QuantisedModel({1, 0}, ".weight_scale")); }
TEST_F(Fp8Model, OneScaleATensor) {
  expect_dequantised(QuantisedModel({0, 0}, ".weight_scale"));
  QuantisedModel scalar({0, 0});
  for (NamedTensor& tensor : scalar.tensors) {
    if (tensor.name.ends_with("_scale_inv")) tensor.shape.clear();
  }
  expect_dequantised(scalar);
}

// It is another model than the one it was made from, so that the tests above see the rounding.
TEST_F(Fp8Model, RoundingShows) {
  const TemporaryFolder folder;
  QuantisedModel({128, 128}).write(folder.path());
  EXPECT_FALSE(close(logits_of(folder.path()),
                     logits_of(onset::testing::data("models/deepseek_v3")),
                     {.atol = 1e-3, .rtol = 1e-3}));
}

TEST_F(Fp8Model, ScalesOfAnotherFloatingType) {
  QuantisedModel model({128, 128});
  for (NamedTensor& tensor : model.tensors) {
    if (!tensor.name.ends_with("_scale_inv")) continue;
    const std::vector<std::uint16_t> three{0x4040};  // bfloat16
    tensor.dtype = DType::bf16;
    tensor.data = bytes_of(three);
    const std::string weight = tensor.name.substr(0, tensor.name.rfind("_scale_inv"));
    const NamedTensor& codes = model.tensor(weight);
    for (std::size_t i = 0; i < codes.data.size(); ++i) {
      model.dequantised.values.at(weight)[i] =
          static_cast<float>(3.0 * e4m3_value(static_cast<unsigned>(codes.data[i])));
    }
  }
  expect_dequantised(model);
}

TEST_F(Fp8Model, MissingScalesAreNamed) {
  QuantisedModel model({128, 128});
  const std::string name = std::string(down) + ".weight_scale_inv";
  std::erase_if(model.tensors, [&](const NamedTensor& tensor) { return tensor.name == name; });
  const std::string found = error(model);
  EXPECT_NE(found.find(std::string(down) + ".weight is FP8 without its scales " + name),
            std::string::npos)
      << found;
}

TEST_F(Fp8Model, ScalesOfAnotherShapeAreNamed) {
  QuantisedModel model({16, 16});  // the matrix is [48, 24]: scales [3, 2]
  NamedTensor& scales = model.tensor(std::string(down) + ".weight_scale_inv");
  ASSERT_EQ(scales.shape, (std::vector<std::int64_t>{3, 2}));
  scales.shape = {2, 3};
  const std::string found = error(model);
  EXPECT_NE(found.find(scales.name + " has shape [2, 3], expected [3, 2]"), std::string::npos)
      << found;
}

TEST_F(Fp8Model, ScalesThatAreNoNumbersAreRefused) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    QuantisedModel model({128, 128});
    NamedTensor& scales = model.tensor(std::string(down) + ".weight_scale_inv");
    scales.data = bytes_of(std::vector<float>{bad});
    const std::string found = error(model);
    EXPECT_NE(found.find(scales.name), std::string::npos) << found;
    EXPECT_NE(found.find("expected finite scales"), std::string::npos) << found;
  }
  QuantisedModel model({128, 128});
  NamedTensor& scales = model.tensor(std::string(down) + ".weight_scale_inv");
  scales.dtype = DType::i32;
  const std::string found = error(model);
  EXPECT_NE(found.find(scales.name), std::string::npos) << found;
}

TEST_F(Fp8Model, MalformedBlockSizesAreRefused) {
  for (const OrderedJson& bad : std::vector<OrderedJson>{
           128, "128", {128}, {128, 128, 128}, {0, 128}, {128, -1}, {128.5, 128}, {"a", "b"}}) {
    QuantisedModel model({128, 128});
    model.config["quantization_config"]["weight_block_size"] = bad;
    const std::string found = error(model);
    EXPECT_NE(found.find("weight_block_size should be two positive integers"), std::string::npos)
        << bad.dump() << ": " << found;
  }
}

// Without scales in a file that promises none, the codes are the weights.
TEST_F(Fp8Model, PlainFp8NeedsNoScales) {
  QuantisedModel model({128, 128});
  model.config.erase("quantization_config");
  std::erase_if(model.tensors,
                [](const NamedTensor& each) { return each.name.ends_with("_scale_inv"); });
  for (const NamedTensor& tensor : model.tensors) {
    if (tensor.dtype != DType::f8_e4m3) continue;
    std::vector<float>& values = model.dequantised.values.at(tensor.name);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(e4m3_value(static_cast<unsigned>(tensor.data[i])));
    }
  }
  expect_dequantised(model);
}

// transformers' own stacks of experts keep their scales under other names.
TEST_F(Fp8Model, StacksOfFp8ExpertsAreRefused) {
  QuantisedModel model({128, 128});
  std::vector<unsigned char> codes(std::size_t{8} * 48 * 48, 0x38);
  const std::string block = "model.layers.1.mlp.experts.";
  for (const DType type : {DType::f8_e4m3, DType::f8_e5m2}) {
    std::erase_if(model.tensors,
                  [&](const NamedTensor& each) { return each.name.starts_with(block); });
    codes.resize(std::size_t{8} * 48 * 48);
    model.tensors.push_back({block + "gate_up_proj", type, {8, 48, 48}, bytes_of(codes)});
    codes.resize(std::size_t{8} * 48 * 24);
    model.tensors.push_back({block + "down_proj", type, {8, 48, 24}, bytes_of(codes)});
    const std::string found = error(model);
    EXPECT_NE(found.find(block + "gate_up_proj is FP8 in one stack of experts"), std::string::npos)
        << found;
  }
}

}  // namespace
}  // namespace onset::testing
