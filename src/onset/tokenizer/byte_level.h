// The byte-level alphabet of GPT-2: every byte has one printable character, so that a vocabulary of
// bytes can be written as text ("Ġcolor" for " color").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace onset {

// Appends the bytes that `spelled` stands for; false, with `bytes` as it was, when a character is
// not of the alphabet.
[[nodiscard]] bool append_bytes_of(std::string_view spelled, std::string& bytes);
[[nodiscard]] std::string spelling_of(std::string_view bytes);

}  // namespace onset
