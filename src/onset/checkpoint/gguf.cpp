#include "onset/checkpoint/gguf.h"

#include <algorithm>
#include <array>
#include <bit>
#include <fstream>
#include <set>
#include <utility>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/checkpoint/byte_reader.h"
#include "onset/checkpoint/checkpoint_builder.h"
#include "onset/checkpoint/gguf_types.h"

namespace onset {
namespace {

constexpr std::string_view magic = "GGUF";
constexpr std::uint64_t default_alignment = 32;
constexpr std::uint32_t max_dimensions = 4;  // GGML_MAX_DIMS
// The least that a metadata entry and a tensor take: a count beyond that is a lie.
constexpr std::uint64_t min_entry_bytes = 8 + 4 + 1;
constexpr std::uint64_t min_tensor_bytes = 8 + 4 + 4 + 8;

std::string_view kind_of_file(std::string_view begin) {
  if (begin.empty()) return "it is empty";
  if (begin.starts_with("FUGG")) return "it is a big-endian GGUF file, which is not read";
  if (begin.starts_with("tjgg") || begin.starts_with("fmgg") || begin.starts_with("lmgg")) {
    return "it is an older ggml file; convert the model to GGUF again";
  }
  if (begin.starts_with("version ")) {
    return "it looks like a Git LFS pointer; fetch the file itself with git lfs pull";
  }
  if (begin.starts_with("PK\x03\x04")) return "it looks like a PyTorch or zip file";
  return "it does not begin with \"GGUF\"";
}

}  // namespace

// Reads one file from its beginning to the end of the tensor table.
class GgufReader {
 public:
  explicit GgufReader(const std::filesystem::path& path)
      : name_(path.string()), reader_({}, name_) {
    result_.file = MappedFile::open(path);
    reader_ = ByteReader(result_.file.bytes(), name_);
  }

  GgufFile read() {
    read_header();
    for (std::uint64_t i = 0; i < entry_count_; ++i) read_entry();
    read_alignment();
    for (std::uint64_t i = 0; i < tensor_count_; ++i) read_tensor();
    place_tensors();
    return std::move(result_);
  }

 private:
  void read_header() {
    const auto bytes = result_.file.bytes();
    const std::string_view begin(reinterpret_cast<const char*>(bytes.data()),
                                 std::min<std::size_t>(bytes.size(), 8));
    require_input(begin.starts_with(magic), name_, ": is not a GGUF file: ", kind_of_file(begin));
    reader_.take(magic.size(), "the magic number");
    result_.version = reader_.read<std::uint32_t>("the version");
    const std::uint32_t version = result_.version;
    require_input(version != 1, name_,
                  ": is GGUF version 1, versions 2 and 3 are read; convert the "
                  "model again with a newer llama.cpp");
    require_input(version < 0x10000U || (version & 0xFFFFU) != 0, name_,
                  ": is a big-endian GGUF file, only little-endian ones are read");
    require_input(version == 2 || version == 3, name_, ": is GGUF version ", version,
                  ", versions 2 and 3 are read");
    tensor_count_ = reader_.read<std::uint64_t>("the number of tensors");
    entry_count_ = reader_.read<std::uint64_t>("the number of metadata entries");
    check_count(entry_count_, min_entry_bytes, "metadata entries");
    check_count(tensor_count_, min_tensor_bytes, "tensors");
  }

  void check_count(std::uint64_t count, std::uint64_t least_bytes, std::string_view what) const {
    require_input(count <= reader_.remaining() / least_bytes, reader_.where(),
                  ": truncated or damaged: says it has ", count, " ", what, ", the ",
                  reader_.remaining(), " bytes that follow cannot hold them");
  }

  void read_entry() {
    const std::string_view stored = reader_.read_string("the name of a metadata entry");
    const std::string key = valid_utf8(stored);
    require_input(!key.empty() && key == stored, name_, ": metadata entry ", quote(stored),
                  ": its name is ", key.empty() ? "empty" : "not valid UTF-8");
    require_input(!result_.scalars.contains(key) && result_.arrays.count(key) == 0, name_,
                  ": metadata entry ", quote(key), " is there twice");
    const GgufType type = read_type(key);
    if (type == GgufType::array) {
      result_.arrays.emplace(key, read_array(key));
    } else {
      result_.scalars[key] = read_scalar(key, type);
    }
  }

  GgufType read_type(const std::string& key) {
    const auto type = reader_.read<std::uint32_t>("the type of metadata entry " + quote(key));
    require_input(type < gguf_type_count, name_, ": metadata entry ", quote(key),
                  ": expected a type from 0 to ", gguf_type_count - 1, ", found ", type);
    return static_cast<GgufType>(type);
  }

  Json read_scalar(const std::string& key, GgufType type) {
    const std::string what = "metadata entry " + quote(key);
    switch (type) {
      case GgufType::u8:
        return reader_.read<std::uint8_t>(what);
      case GgufType::i8:
        return reader_.read<std::int8_t>(what);
      case GgufType::u16:
        return reader_.read<std::uint16_t>(what);
      case GgufType::i16:
        return reader_.read<std::int16_t>(what);
      case GgufType::u32:
        return reader_.read<std::uint32_t>(what);
      case GgufType::i32:
        return reader_.read<std::int32_t>(what);
      case GgufType::f32:
        return reader_.read<float>(what);
      case GgufType::boolean: {
        const auto value = reader_.read<std::uint8_t>(what);
        require_input(value <= 1, name_, ": ", what, ": expected 0 or 1 as a boolean, found ",
                      int{value});
        return value == 1;
      }
      case GgufType::string:
        return valid_utf8(reader_.read_string(what));
      case GgufType::u64:
        return reader_.read<std::uint64_t>(what);
      case GgufType::i64:
        return reader_.read<std::int64_t>(what);
      case GgufType::f64:
        return reader_.read<double>(what);
      case GgufType::array:
        break;
    }
    return nullptr;
  }

  GgufArray read_array(const std::string& key) {
    const std::string what = "the array of metadata entry " + quote(key);
    const GgufType type = read_type(key);
    require_input(type != GgufType::array, name_, ": metadata entry ", quote(key),
                  ": arrays of arrays are not read");
    GgufArray array;
    array.where_ = str_cat(name_, ": metadata entry ", quote(key));
    array.type_ = static_cast<std::uint32_t>(type);
    const auto count = reader_.read<std::uint64_t>(what);
    check_count(count, gguf_value_bytes(type), "elements in " + what);
    array.size_ = count;
    const std::size_t begin = reader_.position();
    if (type == GgufType::string) {
      for (std::uint64_t i = 0; i < count; ++i) (void)reader_.read_string(what);
    } else {
      reader_.take(count * gguf_value_bytes(type), what);
    }
    array.bytes_ = result_.file.bytes().subspan(begin, reader_.position() - begin);
    return array;
  }

  void read_alignment() {
    require_input(!result_.arrays.contains("general.alignment"), name_,
                  ": general.alignment should be a power of two, is an array");
    const auto value = find_int(result_.scalars, "general.alignment", name_);
    if (!value) return;
    require_input(*value > 0 && std::has_single_bit(static_cast<std::uint64_t>(*value)), name_,
                  ": general.alignment should be a power of two, is ", *value);
    alignment_ = static_cast<std::uint64_t>(*value);
  }

  void read_tensor() {
    const std::string_view stored = reader_.read_string("the name of a tensor");
    TensorInfo tensor;
    tensor.name = valid_utf8(stored);
    const std::string where = str_cat(name_, ": tensor ", quote(stored));
    require_input(!tensor.name.empty() && tensor.name == stored, where, ": its name is ",
                  tensor.name.empty() ? "empty" : "not valid UTF-8");
    require_input(names_.insert(tensor.name).second, where, " is there twice");
    tensor.shape = read_shape(where);
    const auto type = reader_.read<std::uint32_t>("the type of tensor " + quote(stored));
    const std::optional<DType> dtype = dtype_from_ggml(type);
    if (!dtype) {
      throw input_error(
          str_cat(where, ": type ", ggml_type_name(type), " is not read"),
          "quantise the model to one of the types that are read: " + readable_ggml_types());
    }
    tensor.dtype = *dtype;
    const std::int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
    const DTypeInfo& info = dtype_info(*dtype);
    require_input(row % info.block_values == 0, where, ": ", describe(tensor),
                  ": expected rows of a "
                  "multiple of ",
                  info.block_values, " elements, found ", row);
    const auto elements = checked_elements(tensor.shape);
    const auto bytes = elements ? checked_bytes(*dtype, *elements) : std::nullopt;
    require_input(bytes.has_value(), where, ": its shape ", describe_shape(tensor.shape),
                  " has more elements than a file can hold");
    tensor.bytes = *bytes;
    tensor.offset = reader_.read<std::uint64_t>("the offset of tensor " + quote(stored));
    result_.tensors.push_back(std::move(tensor));
  }

  // Fastest dimension first in the file, last in onset.
  std::vector<std::int64_t> read_shape(const std::string& where) {
    const auto count = reader_.read<std::uint32_t>("the number of dimensions of a tensor");
    require_input(count <= max_dimensions, where, ": expected at most ", max_dimensions,
                  " dimensions, found ", count);
    std::vector<std::int64_t> shape(count);
    for (std::int64_t& size : shape) {
      const auto stored = reader_.read<std::uint64_t>("a dimension of a tensor");
      require_input(stored <= std::uint64_t{INT64_MAX}, where,
                    ": expected dimensions below 2^63, found ", stored);
      size = static_cast<std::int64_t>(stored);
    }
    std::reverse(shape.begin(), shape.end());
    return shape;
  }

  // Turns offsets within the data, which begins at the next aligned byte, into offsets in the file.
  void place_tensors() {
    if (result_.tensors.empty()) return;  // a file with a vocabulary alone ends here
    const std::uint64_t size = result_.file.bytes().size();
    const std::uint64_t over = reader_.position() % alignment_;
    const std::uint64_t padding = over == 0 ? 0 : alignment_ - over;
    const std::uint64_t available =
        padding > reader_.remaining() ? 0 : reader_.remaining() - padding;
    for (TensorInfo& tensor : result_.tensors) {
      const std::string where = str_cat(name_, ": tensor ", quote(tensor.name));
      require_input(tensor.offset % alignment_ == 0, where, ": its offset ", tensor.offset,
                    " should be a multiple of the alignment ", alignment_);
      if (tensor.offset > available || tensor.bytes > available - tensor.offset) {
        throw input_error(
            str_cat(where, ": truncated: ", describe(tensor), " takes ", tensor.bytes,
                    " bytes at offset ", tensor.offset, " of the data, the file holds ", available),
            "the file is incomplete; copy or download it again");
      }
      tensor.offset += size - available;
    }
    check_no_overlap();
  }

  void check_no_overlap() const {
    std::vector<const TensorInfo*> order;
    order.reserve(result_.tensors.size());
    for (const TensorInfo& tensor : result_.tensors) order.push_back(&tensor);
    std::sort(order.begin(), order.end(), [](const TensorInfo* a, const TensorInfo* b) {
      return std::pair(a->offset, a->bytes) < std::pair(b->offset, b->bytes);
    });
    for (std::size_t i = 1; i < order.size(); ++i) {
      require_input(order[i - 1]->offset + order[i - 1]->bytes <= order[i]->offset, name_,
                    ": tensors ", quote(order[i - 1]->name), " and ", quote(order[i]->name),
                    " overlap");
    }
  }

  std::string name_;
  ByteReader reader_;
  GgufFile result_;
  std::uint64_t tensor_count_ = 0;
  std::uint64_t entry_count_ = 0;
  std::uint64_t alignment_ = default_alignment;
  std::set<std::string> names_;
};

bool looks_like_gguf(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, magic.size()> begin{};
  file.read(begin.data(), begin.size());
  return file.gcount() == static_cast<std::streamsize>(begin.size()) &&
         std::string_view(begin.data(), begin.size()) == magic;
}

GgufFile read_gguf(const std::filesystem::path& path) { return GgufReader(path).read(); }

}  // namespace onset
