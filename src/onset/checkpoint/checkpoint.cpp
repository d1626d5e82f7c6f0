#include "onset/checkpoint/checkpoint.h"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/checkpoint/checkpoint_builder.h"
#include "onset/checkpoint/gguf.h"
#include "onset/checkpoint/run_checkpoints.h"

namespace onset {
namespace {

bool name_less(const TensorInfo& a, const TensorInfo& b) { return a.name < b.name; }

Error not_a_checkpoint(const std::filesystem::path& path) {
  if (path.extension() == ".safetensors") {
    return input_error(
        str_cat(path.string(), ": is one weight file, a model is its folder with config.json"),
        "give the folder that holds this file");
  }
  if (path.extension() == ".json") {
    return input_error(str_cat(path.string(), ": is a JSON file, not a model"),
                       "give the folder that holds it");
  }
  return input_error(str_cat(path.string(),
                             ": is not a model: neither a GGUF file (it does not "
                             "begin with \"GGUF\") nor a folder with config.json"),
                     "give a folder as Hugging Face writes it, or a .gguf file");
}

}  // namespace

std::optional<std::int64_t> checked_elements(std::span<const std::int64_t> shape) {
  // A zero makes the product zero whatever else stands there, but the others must be sound too.
  std::int64_t product = 1;
  bool empty = false;
  for (const std::int64_t size : shape) {
    if (size < 0) return std::nullopt;
    if (size == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(product, size, &product)) {
      return std::nullopt;
    }
  }
  return empty ? 0 : product;
}

std::optional<std::uint64_t> checked_bytes(DType type, std::int64_t elements) {
  const DTypeInfo& info = dtype_info(type);
  std::int64_t bytes = 0;
  if (elements < 0 || elements % info.block_values != 0 ||
      __builtin_mul_overflow(elements / info.block_values, info.block_bytes, &bytes)) {
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(bytes);
}

std::string describe_shape(std::span<const std::int64_t> shape) {
  constexpr std::size_t max_shown = 8;
  std::string result = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) result += ", ";
    if (i == max_shown) {
      result += "..";
      break;
    }
    result += std::to_string(shape[i]);
  }
  return result + "]";
}

std::int64_t TensorInfo::elements() const {
  std::int64_t product = 1;  // the readers have checked that it cannot overflow
  for (const std::int64_t size : shape) product *= size;
  return product;
}

std::string describe(const TensorInfo& tensor) {
  return str_cat(dtype_info(tensor.dtype).name, " ", describe_shape(tensor.shape));
}

Checkpoint Checkpoint::open(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    const std::string unfinished = unfinished_run_hint(path);
    throw input_error(str_cat(path.string(), ": does not exist"),
                      unfinished.empty()
                          ? "give a folder with config.json and safetensors, or a .gguf file"
                          : unfinished);
  }
  require_input(!error, path.string(), ": cannot open: ", error.message());
  if (std::filesystem::is_directory(status)) return open_hf_folder(path);
  require_input(std::filesystem::is_regular_file(status), path.string(),
                ": is neither a folder nor a regular file");
  if (path.extension() == ".gguf" || looks_like_gguf(path)) return open_gguf(path);
  throw not_a_checkpoint(path);
}

const TensorInfo* Checkpoint::find(const std::string& name) const {
  const auto at = std::lower_bound(
      tensors_.begin(), tensors_.end(), name,
      [](const TensorInfo& tensor, const std::string& wanted) { return tensor.name < wanted; });
  return at != tensors_.end() && at->name == name ? &*at : nullptr;
}

const TensorInfo& Checkpoint::require(const std::string& name) const {
  const TensorInfo* tensor = find(name);
  if (tensor != nullptr) return *tensor;
  std::vector<std::string> names;
  names.reserve(tensors_.size());
  for (const TensorInfo& candidate : tensors_) names.push_back(candidate.name);
  throw input_error(str_cat(path_.string(), ": has no tensor ", quote(name), " (it has ",
                            tensors_.size(), " tensors)"),
                    did_you_mean(nearest(name, names)));
}

std::span<const std::byte> Checkpoint::data(const TensorInfo& tensor) const {
  const std::span<const std::byte> bytes = files_.at(tensor.file).bytes();
  if (tensor.offset > bytes.size() || tensor.bytes > bytes.size() - tensor.offset) {
    throw std::logic_error("Checkpoint::data: a tensor of another checkpoint");
  }
  return bytes.subspan(tensor.offset, tensor.bytes);
}

void Checkpoint::will_need(const TensorInfo& tensor) const {
  files_.at(tensor.file).will_need(tensor.offset, tensor.bytes);
}

void Checkpoint::drop(const TensorInfo& tensor) const {
  files_.at(tensor.file).drop(tensor.offset, tensor.bytes);
}

namespace {

// Calls visit(file, offset) with the file that the bytes lie in.
template <typename Visit>
void locate(const std::vector<MappedFile>& files, std::span<const std::byte> part,
            const Visit& visit) {
  for (const MappedFile& file : files) {
    const std::span<const std::byte> whole = file.bytes();
    if (std::less<>{}(part.data(), whole.data()) ||
        !std::less<>{}(part.data(), whole.data() + whole.size())) {
      continue;
    }
    visit(file, static_cast<std::size_t>(part.data() - whole.data()));
    return;
  }
}

}  // namespace

void Checkpoint::will_need(std::span<const std::byte> part) const {
  locate(files_, part,
         [&](const MappedFile& file, std::size_t offset) { file.will_need(offset, part.size()); });
}

void Checkpoint::drop(std::span<const std::byte> part) const {
  locate(files_, part,
         [&](const MappedFile& file, std::size_t offset) { file.drop(offset, part.size()); });
}

Checkpoint CheckpointBuilder::build() && {
  std::sort(tensors.begin(), tensors.end(), name_less);
  Checkpoint result;
  result.format_ = format;
  result.path_ = std::move(path);
  result.files_ = std::move(files);
  result.tensors_ = std::move(tensors);
  result.config_ = std::move(config);
  result.generation_config_ = std::move(generation_config);
  return result;
}

}  // namespace onset
