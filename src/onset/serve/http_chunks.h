// The body of a request that comes in chunks. httplib's own reader takes a negative size for a huge
// one and then waits for it. Torch-free.
#pragma once

#include <httplib.h>

#include <cstddef>
#include <string>

namespace onset {

enum class BodyEnd {
  complete,
  too_large,  // above `most` bytes
  damaged,    // a size that is no number, or a chunk that does not end where it should
  cut,        // the connection gave no more
};

// Appends the chunks' content to `body` up to `most` bytes, and reads past trailing fields.
[[nodiscard]] BodyEnd read_chunks(httplib::Stream& stream, std::size_t most, std::string& body);

}  // namespace onset
