#include "onset/model/tensor_finder.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "onset/base/error.h"
#include "onset/base/json.h"

namespace onset {
namespace {

bool is_fp8(DType type) { return type == DType::f8_e4m3 || type == DType::f8_e5m2; }

struct BlockSize {
  std::int64_t rows = 128;
  std::int64_t columns = 128;
};

// `quantization_config.weight_block_size` [rows, columns], 128 x 128 where it is not given.
BlockSize fp8_block_size(const Checkpoint& checkpoint) {
  const Json& config = checkpoint.config();
  const auto quantisation = config.find("quantization_config");
  if (quantisation == config.end() || !quantisation->is_object()) return {};
  const auto size = quantisation->find("weight_block_size");
  if (size == quantisation->end() || size->is_null()) return {};
  const bool sound = size->is_array() && size->size() == 2 && (*size)[0].is_number_integer() &&
                     (*size)[1].is_number_integer() && (*size)[0].get<std::int64_t>() >= 1 &&
                     (*size)[1].get<std::int64_t>() >= 1;
  require_input(sound, (checkpoint.path() / "config.json").string(),
                ": weight_block_size should be two positive integers");
  return {(*size)[0].get<std::int64_t>(), (*size)[1].get<std::int64_t>()};
}

// Whether the file says that its FP8 weights come with scales.
bool promises_fp8_scales(const Checkpoint& checkpoint) {
  const Json& config = checkpoint.config();
  const auto quantisation = config.find("quantization_config");
  return quantisation != config.end() && quantisation->is_object() &&
         quantisation->value("quant_method", Json()) == "fp8";
}

std::int64_t blocks(std::int64_t size, std::int64_t block) {
  return size / block + (size % block != 0 ? 1 : 0);
}

}  // namespace

TensorFinder::TensorFinder(const Checkpoint& checkpoint, Compute compute)
    : checkpoint_(checkpoint),
      compute_(compute),
      gguf_(checkpoint.format() == CheckpointFormat::gguf) {
  if (gguf_) return;
  // A base model saved without its head has no "model." before its names; a model of text and
  // images has more.
  for (const char* prefix : {"model.", "", "language_model.model.", "model.language_model."}) {
    if (checkpoint.find(str_cat(prefix, "embed_tokens.weight")) == nullptr) continue;
    prefix_ = prefix;
    break;
  }
}

std::string TensorFinder::layer_name(std::int64_t layer, TensorNames names) const {
  return gguf_ ? str_cat("blk.", layer, ".", names.gguf)
               : str_cat(prefix_, "layers.", layer, ".", names.hugging_face);
}

std::string TensorFinder::embedding_name() const {
  return gguf_ ? "token_embd" : prefix_ + "embed_tokens";
}

std::string TensorFinder::final_norm_name() const {
  return gguf_ ? "output_norm" : prefix_ + "norm";
}

const TensorInfo* TensorFinder::find(const std::string& name, std::string_view suffix) const {
  return checkpoint_.find(suffix.empty() ? name : str_cat(name, ".", suffix));
}

StoredMatrix TensorFinder::matrix(const std::string& name, std::int64_t rows,
                                  std::int64_t columns) {
  const TensorInfo& info = checkpoint_.require(name + ".weight");
  check(info, std::array{rows, columns});
  noted_.push_back(&info);
  StoredMatrix weight{checkpoint_.data(info), info.dtype, rows, columns};
  if (is_fp8(info.dtype)) add_scales(name, info, weight);
  return weight;
}

StoredMatrix TensorFinder::row(const std::string& name, std::int64_t columns) {
  const TensorInfo* info = find(name, "weight");
  if (info == nullptr || info->shape.size() != 1) return matrix(name, 1, columns);
  check(*info, std::array{columns});
  noted_.push_back(info);
  return {checkpoint_.data(*info), info->dtype, 1, columns};
}

void TensorFinder::add_scales(const std::string& name, const TensorInfo& info,
                              StoredMatrix& weight) const {
  const TensorInfo* scales = find(name, "weight_scale_inv");
  if (scales == nullptr) scales = find(name, "weight_scale");
  if (scales == nullptr) {
    require_input(!promises_fp8_scales(checkpoint_), file_of(info), ": tensor ", info.name,
                  " is FP8 without its scales ", name, ".weight_scale_inv");
    return;
  }
  // One scale for all, one a row, or one a block.
  BlockSize block = fp8_block_size(checkpoint_);
  if (scales->elements() == 1) {
    block = {weight.rows, weight.columns};
  } else if (scales->elements() == weight.rows && scales->shape.front() == weight.rows) {
    block = {1, weight.columns};
  } else {
    check(*scales,
          std::array{blocks(weight.rows, block.rows), blocks(weight.columns, block.columns)});
  }
  require_input(converts_to_float32(scales->dtype), file_of(*scales), ": tensor ", scales->name,
                " has type ", dtype_info(scales->dtype).name, ", expected a floating-point type");
  auto table = std::make_shared<BlockScales>();
  table->values.resize(static_cast<std::size_t>(scales->elements()));
  to_float32(scales->dtype, checkpoint_.data(*scales), table->values);
  for (const float value : table->values) {
    require_input(std::isfinite(value), file_of(*scales), ": tensor ", scales->name, " holds ",
                  value, ", expected finite scales");
  }
  table->block_rows = block.rows;
  table->block_columns = block.columns;
  weight.scales = std::move(table);
}

std::vector<StoredMatrix> TensorFinder::stack(const std::string& name, std::int64_t count,
                                              std::int64_t rows, std::int64_t columns) {
  const TensorInfo& info = checkpoint_.require(name);
  check(info, std::array{count, rows, columns});
  require_input(!promises_fp8_scales(checkpoint_) || !is_fp8(info.dtype), file_of(info),
                ": tensor ", info.name, " is FP8 in one stack of experts, which is not supported");
  const auto bytes = checkpoint_.data(info);
  const std::size_t each = bytes.size() / static_cast<std::size_t>(count);
  std::vector<StoredMatrix> matrices;
  matrices.reserve(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    matrices.push_back({bytes.subspan(i * each, each), info.dtype, rows, columns});
  }
  return matrices;
}

at::Tensor TensorFinder::vector(const std::string& name, std::string_view suffix,
                                std::int64_t size) {
  const TensorInfo& info = checkpoint_.require(str_cat(name, ".", suffix));
  check(info, std::array{size});
  noted_.push_back(&info);
  const at::Tensor values = expand({checkpoint_.data(info), info.dtype, 1, size}, at::kFloat);
  const at::Tensor row = values.view({size});
  return compute_ == Compute::f64 ? row.to(at::kDouble) : row;
}

at::Tensor TensorFinder::gain(const std::string& name, std::int64_t size, bool plus_one) {
  const at::Tensor stored = vector(name, "weight", size);
  return plus_one ? stored.add(1.0) : stored;
}

at::Tensor TensorFinder::bias(const std::string& name, std::int64_t size, bool promised) {
  if (find(name, "bias") == nullptr && !promised) return {};
  return vector(name, "bias", size);
}

Linear TensorFinder::linear(const std::string& name, std::int64_t rows, std::int64_t columns,
                            bool has_bias, std::int64_t permuted_head_dim) {
  const StoredMatrix weight = matrix(name, rows, columns);
  Linear linear(weight, bias(name, rows, has_bias), compute_, permuted_head_dim);
  linear.set_origin({.name = name});
  return linear;
}

Linear TensorFinder::plain(const StoredMatrix& weight, TensorOrigin origin) const {
  Linear linear(weight, {}, compute_);
  linear.set_origin(std::move(origin));
  return linear;
}

Linear TensorFinder::precise(const StoredMatrix& weight, TensorOrigin origin) const {
  Linear linear(weight, {}, compute_ == Compute::bf16 ? Compute::f32 : compute_);
  linear.set_origin(std::move(origin));
  return linear;
}

std::vector<Linear> TensorFinder::divided(const std::string& name,
                                          std::span<const std::int64_t> rows,
                                          std::int64_t columns) {
  std::int64_t total = 0;
  for (const std::int64_t count : rows) total += count;
  const StoredMatrix whole = matrix(name, total, columns);
  const at::Tensor whole_bias = bias(name, total, false);
  std::vector<Linear> parts;
  std::int64_t first = 0;
  for (const std::int64_t count : rows) {
    parts.emplace_back(whole.slice(first, count),
                       whole_bias.defined() ? whole_bias.narrow(0, first, count) : at::Tensor(),
                       compute_);
    parts.back().set_origin({.name = name, .first_row = first, .all_rows = total});
    first += count;
  }
  return parts;
}

std::vector<const TensorInfo*> TensorFinder::take_noted() { return std::exchange(noted_, {}); }

std::string TensorFinder::file_of(const TensorInfo& info) const {
  return checkpoint_.files()[info.file].path().string();
}

void TensorFinder::check(const TensorInfo& info, std::span<const std::int64_t> shape) const {
  require_input(std::equal(info.shape.begin(), info.shape.end(), shape.begin(), shape.end()),
                file_of(info), ": tensor ", info.name, " has shape ", describe_shape(info.shape),
                ", expected ", describe_shape(shape), " by the configuration");
  require_input(converts_to_float32(info.dtype), file_of(info), ": tensor ", info.name,
                " has type ", dtype_info(info.dtype).name,
                ", expected a floating-point or quantised type");
}

}  // namespace onset
