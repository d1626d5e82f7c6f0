#include "onset/checkpoint/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/checkpoint/checkpoint_builder.h"
#include "onset/checkpoint/safetensors_header.h"

namespace onset {
namespace {

static_assert(std::endian::native == std::endian::little,
              "both formats store little-endian numbers, which are used in place");

constexpr std::size_t length_bytes = 8;
constexpr std::uint64_t max_header_bytes = 100'000'000;  // as the reference implementation's

std::string_view header_text(const MappedFile& file) {
  const std::span<const std::byte> bytes = file.bytes();
  const std::string name = file.path().string();
  require_input(bytes.size() >= length_bytes, name,
                ": is not a safetensors file: expected at least ", length_bytes, " bytes, found ",
                bytes.size());
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  require_input(length <= max_header_bytes, name,
                ": is not a safetensors file: its header should "
                "have at most ",
                max_header_bytes, " bytes, says ", length);
  require_input(length <= bytes.size() - length_bytes, name, ": truncated: the header should have ",
                length, " bytes, ", bytes.size() - length_bytes, " are there");
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + length_bytes, length);
  require_input(text.starts_with('{'), name,
                ": is not a safetensors file: its header does not begin with \"{\"");
  return text;
}

// `data_bytes` follow the header.
TensorInfo checked_tensor(SafetensorsEntry&& entry, std::uint64_t data_begin,
                          std::uint64_t data_bytes, const std::string& file) {
  const std::string where = str_cat(file, ": tensor ", quote(entry.name));
  require_input(!entry.name.empty(), where, ": has an empty name");
  const std::optional<DType> dtype = dtype_from_safetensors(entry.dtype);
  require_input(
      dtype.has_value(), where, ": its type ", quote(entry.dtype),
      " is not one that is read: F64, F32, F16, BF16, F8_E4M3, F8_E5M2, I64, I32, I16, I8, "
      "U8, BOOL");
  const auto elements = checked_elements(entry.shape);
  const auto bytes = elements ? checked_bytes(*dtype, *elements) : std::nullopt;
  require_input(bytes.has_value(), where, ": its shape ", describe_shape(entry.shape),
                " has more elements than a file can hold");
  const auto [begin, end] = entry.data_offsets;
  require_input(begin <= end, where, ": data_offsets end at ", end, ", before they begin at ",
                begin);
  require_input(end - begin == *bytes, where, ": ", dtype_info(*dtype).name, " ",
                describe_shape(entry.shape), " takes ", *bytes, " bytes, data_offsets span ",
                end - begin);
  if (end > data_bytes) {
    throw input_error(str_cat(where, ": truncated: its data ends at byte ", end,
                              " of the data, the file holds ", data_bytes),
                      "the file is incomplete; copy or download it again");
  }
  return {.name = std::move(entry.name),
          .dtype = *dtype,
          .shape = std::move(entry.shape),
          .file = 0,
          .offset = data_begin + begin,
          .bytes = *bytes};
}

// Ranges must follow one another without overlap or hole, up to the end of the file.
void check_coverage(const std::vector<TensorInfo>& tensors, std::uint64_t data_begin,
                    std::uint64_t file_size, const std::string& file) {
  std::vector<const TensorInfo*> order;
  order.reserve(tensors.size());
  for (const TensorInfo& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const TensorInfo* a, const TensorInfo* b) {
    return std::pair(a->offset, a->bytes) < std::pair(b->offset, b->bytes);
  });
  std::uint64_t at = data_begin;
  for (const TensorInfo* tensor : order) {
    const std::string_view fault =
        tensor->offset < at ? "overlap the tensor before it" : "leave a hole before it";
    require_input(tensor->offset == at, file, ": tensor ", quote(tensor->name), ": data_offsets ",
                  fault, ": expected to begin at ", at - data_begin, ", found ",
                  tensor->offset - data_begin);
    at += tensor->bytes;
  }
  require_input(at == file_size, file, ": ", file_size - at,
                " bytes after the last tensor belong to none");
}

}  // namespace

SafetensorsFile read_safetensors(const std::filesystem::path& path) {
  SafetensorsFile result;
  result.file = MappedFile::open(path);
  const std::string file = path.string();
  const std::string_view text = header_text(result.file);
  SafetensorsHeader header = parse_safetensors_header(text, file);
  const std::uint64_t data_begin = length_bytes + text.size();
  const std::uint64_t file_size = result.file.bytes().size();
  result.metadata = std::move(header.metadata);
  result.tensors.reserve(header.entries.size());
  for (SafetensorsEntry& entry : header.entries) {
    result.tensors.push_back(
        checked_tensor(std::move(entry), data_begin, file_size - data_begin, file));
  }
  check_coverage(result.tensors, data_begin, file_size, file);
  return result;
}

}  // namespace onset
