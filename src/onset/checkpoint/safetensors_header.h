// Inside this room: the JSON header of a safetensors file, read strictly and without building a
// tree of it, so that memory stays in proportion and a name given twice is seen.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace onset {

struct SafetensorsEntry {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::array<std::uint64_t, 2> data_offsets = {};  // begin and end, from the start of the data
};

struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  std::vector<SafetensorsEntry> entries;  // in the order of the file
};

// Throws an input error that begins with `where`: not JSON, another structure than
// {"name": {"dtype": "F32", "shape": [..], "data_offsets": [begin, end]}, "__metadata__": {..}},
// a name given twice.
[[nodiscard]] SafetensorsHeader parse_safetensors_header(std::string_view json,
                                                         const std::string& where);

}  // namespace onset
