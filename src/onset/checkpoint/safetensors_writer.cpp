#include <algorithm>
#include <set>
#include <utility>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/checkpoint/checkpoint_builder.h"
#include "onset/checkpoint/safetensors.h"

namespace onset {
namespace {

// Small files are kept in memory until their header is known; larger ones are written behind a gap
// in which nearly every header fits. One that does not moves the data once.
constexpr std::size_t max_buffered_bytes = std::size_t{8} << 20U;
constexpr std::size_t header_gap_bytes = std::size_t{1} << 20U;
constexpr std::size_t length_bytes = 8;
constexpr std::size_t max_header_bytes = 100'000'000;  // what readers accept
constexpr std::size_t data_alignment = 8;

bool is_valid_utf8(const std::string& text) { return valid_utf8(text) == text; }

struct Entry {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::uint64_t bytes = 0;
};

std::string header_json(const std::vector<Entry>& entries,
                        const std::map<std::string, std::string>& metadata) {
  std::string text = "{";
  if (!metadata.empty()) text += R"("__metadata__":)" + Json(metadata).dump();
  std::uint64_t at = 0;
  for (const Entry& entry : entries) {
    if (text.size() > 1) text += ",";
    text += Json(entry.name).dump();
    text +=
        str_cat(R"(:{"dtype":")", dtype_info(entry.dtype).name, R"(","shape":)",
                Json(entry.shape).dump(), R"(,"data_offsets":[)", at, ",", at + entry.bytes, "]}");
    at += entry.bytes;
  }
  return text + "}";
}

// The header as it stands in a file: its length, the JSON, and spaces up to `least_bytes` in all
// and to the next multiple of the alignment.
std::string framed(std::string json, std::size_t least_bytes) {
  std::size_t size = std::max(length_bytes + json.size(), least_bytes);
  size = (size + data_alignment - 1) / data_alignment * data_alignment;
  json.resize(size - length_bytes, ' ');
  const std::uint64_t length = json.size();
  std::string result(length_bytes, '\0');
  for (std::size_t i = 0; i < length_bytes; ++i) {
    result[i] = static_cast<char>(static_cast<unsigned char>(length >> (8 * i)));
  }
  return result + json;
}

}  // namespace

struct SafetensorsWriter::State {
  explicit State(const std::filesystem::path& path) : name(path.string()), file(path) {}

  std::string name;
  AtomicFile file;
  std::vector<Entry> entries;
  std::set<std::string> names;
  std::map<std::string, std::string> metadata;
  std::vector<std::byte> buffered;
  bool streaming = false;

  void write(std::span<const std::byte> data) {
    if (!streaming && data.size() <= max_buffered_bytes - buffered.size()) {
      buffered.insert(buffered.end(), data.begin(), data.end());
      return;
    }
    if (!streaming) {
      streaming = true;
      file.write(std::string(header_gap_bytes, ' '));
      file.write(std::exchange(buffered, {}));
    }
    file.write(data);
  }
};

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path)
    : state_(std::make_unique<State>(path)) {}
SafetensorsWriter::~SafetensorsWriter() = default;

void SafetensorsWriter::add(const std::string& name, DType dtype,
                            std::span<const std::int64_t> shape, std::span<const std::byte> data) {
  const std::string where = str_cat(state_->name, ": tensor ", quote(name));
  require_input(!name.empty() && name != "__metadata__" && is_valid_utf8(name), where,
                ": is no name that a safetensors file can hold");
  require_input(!is_quantised(dtype), where, ": type ", dtype_info(dtype).name,
                " cannot be written to safetensors");
  const auto elements = checked_elements(shape);
  const auto bytes = elements ? checked_bytes(dtype, *elements) : std::nullopt;
  require_input(bytes == data.size(), where, ": ", dtype_info(dtype).name, " ",
                describe_shape(shape), " takes ", bytes ? std::to_string(*bytes) : "too many",
                " bytes, given ", data.size());
  require_input(state_->names.insert(name).second, where, " is added twice");
  state_->write(data);
  state_->entries.push_back(
      {.name = name, .dtype = dtype, .shape = {shape.begin(), shape.end()}, .bytes = data.size()});
}

void SafetensorsWriter::set_metadata(const std::string& key, const std::string& value) {
  require_input(is_valid_utf8(key) && is_valid_utf8(value), state_->name, ": metadata ", quote(key),
                " is not valid UTF-8");
  state_->metadata[key] = value;
}

void SafetensorsWriter::commit() {
  State& state = *state_;
  const std::string header =
      framed(header_json(state.entries, state.metadata), state.streaming ? header_gap_bytes : 0);
  require_input(header.size() - length_bytes <= max_header_bytes, state.name, ": ",
                state.entries.size(), " tensors need a header of ", header.size(),
                " bytes, readers accept ", max_header_bytes);
  if (state.streaming) {
    if (header.size() > header_gap_bytes) {
      state.file.insert_front(header.size() - header_gap_bytes);
    }
    state.file.write_at(0, std::as_bytes(std::span(header)));
  } else {
    state.file.write(header);
    state.file.write(state.buffered);
  }
  state.file.commit();
}

void write_safetensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  SafetensorsWriter writer(path);
  for (const auto& [key, value] : metadata) writer.set_metadata(key, value);
  for (const NamedTensor& tensor : tensors) {
    writer.add(tensor.name, tensor.dtype, tensor.shape, tensor.data);
  }
  writer.commit();
}

}  // namespace onset
