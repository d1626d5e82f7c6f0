// Any bytes as a GGUF file: it is read, with all tensors inside the file, or an onset::Error says
// why not.
#include "memory_file.h"
#include "onset/base/error.h"
#include "onset/checkpoint/gguf.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const onset::fuzzing::MemoryFile memory(data, size);
  try {
    const onset::GgufFile file = onset::read_gguf(memory.path());
    for (const onset::TensorInfo& tensor : file.tensors) {
      if (tensor.elements() < 0 || tensor.offset > size || tensor.bytes > size - tensor.offset) {
        std::abort();
      }
    }
    for (const auto& [key, array] : file.arrays) (void)array.json().dump();
    (void)file.scalars.dump();
  } catch (const onset::Error&) {
    return 0;
  }
  return 0;
}
