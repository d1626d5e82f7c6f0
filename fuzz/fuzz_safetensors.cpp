// Any bytes as a safetensors file: it is read, with its tensors covering the data, or an
// onset::Error says why not.
#include "memory_file.h"
#include "onset/base/error.h"
#include "onset/checkpoint/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const onset::fuzzing::MemoryFile memory(data, size);
  try {
    const onset::SafetensorsFile file = onset::read_safetensors(memory.path());
    for (const onset::TensorInfo& tensor : file.tensors) {
      if (tensor.elements() < 0 || tensor.offset > size || tensor.bytes > size - tensor.offset) {
        std::abort();
      }
    }
  } catch (const onset::Error&) {
    return 0;
  }
  return 0;
}
