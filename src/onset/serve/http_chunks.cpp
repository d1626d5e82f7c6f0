#include "onset/serve/http_chunks.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace onset {
namespace {

constexpr std::size_t most_line = 8192;

// A line without its CRLF; nothing where the connection ended.
BodyEnd read_line(httplib::Stream& stream, std::string& line) {
  line.clear();
  char c = 0;
  while (stream.read(&c, 1) == 1) {
    line += c;
    if (c == '\n') {
      if (!line.ends_with("\r\n")) return BodyEnd::damaged;
      line.resize(line.size() - 2);
      return BodyEnd::complete;
    }
    if (line.size() > most_line) return BodyEnd::damaged;
  }
  return BodyEnd::cut;
}

// Hexadecimal digits, and an extension behind a semicolon that means nothing here.
std::optional<std::size_t> size_of(const std::string& line) {
  std::size_t size = 0;
  const char* end = line.data() + line.size();
  const auto result = std::from_chars(line.data(), end, size, 16);
  if (result.ec != std::errc()) return std::nullopt;
  if (result.ptr == end || *result.ptr == ';' || *result.ptr == ' ') return size;
  return std::nullopt;
}

}  // namespace

BodyEnd read_chunks(httplib::Stream& stream, std::size_t most, std::string& body) {
  std::string line;
  for (;;) {
    if (const auto end = read_line(stream, line); end != BodyEnd::complete) return end;
    const auto size = size_of(line);
    if (!size) return BodyEnd::damaged;
    if (*size == 0) break;
    if (*size > most || body.size() > most - *size) return BodyEnd::too_large;
    const std::size_t begin = body.size();
    body.resize(begin + *size);
    for (std::size_t at = begin; at < body.size();) {
      const auto count = stream.read(body.data() + at, body.size() - at);
      if (count <= 0) return BodyEnd::cut;
      at += static_cast<std::size_t>(count);
    }
    if (const auto end = read_line(stream, line); end != BodyEnd::complete) return end;
    if (!line.empty()) return BodyEnd::damaged;
  }
  do {
    if (const auto end = read_line(stream, line); end != BodyEnd::complete) return end;
  } while (!line.empty());
  return BodyEnd::complete;
}

}  // namespace onset
