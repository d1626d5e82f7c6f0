// A model of tests/data/models read into memory, to be changed and written elsewhere.
#pragma once

#include <string>

#include "support/toy.h"

namespace onset::testing {

// Its configuration and its weights as float32.
inline Toy copy_of_fixture(const std::string& name) {
  const std::filesystem::path folder = onset::testing::data("models/" + name);
  Toy toy;
  toy.config = OrderedJson::parse(read_file(folder / "config.json"));
  const SafetensorsFile file = read_safetensors(folder / "model.safetensors");
  for (const TensorInfo& info : file.tensors) {
    std::vector<float> values(static_cast<std::size_t>(info.elements()));
    to_float32(info.dtype, file.file.bytes().subspan(info.offset, info.bytes), values);
    toy.values[info.name] = std::move(values);
    toy.shapes[info.name] = info.shape;
  }
  return toy;
}

}  // namespace onset::testing
