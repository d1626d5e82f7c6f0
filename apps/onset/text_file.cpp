#include "text_file.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "onset/base/error.h"
#include "onset/base/file.h"
#include "onset/base/json.h"
#include "text.h"

namespace onset::app {
namespace {

// One byte as messages show it: "0xE9".
std::string hex_byte(char byte) {
  char text[8];
  std::snprintf(text, sizeof text, "0x%02X",
                static_cast<unsigned>(static_cast<unsigned char>(byte)));
  return text;
}

}  // namespace

std::string read_text(const std::string& path, const std::string& option) {
  const auto name = printable(path, true);
  std::error_code ignored;
  require_input(!std::filesystem::is_directory(path, ignored), name, ": is a folder");
  auto text = read_file(path);
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    throw input_error(
        name + ": is empty",
        "give " + option + " a file with text, or leave it out for the built-in text");
  }
  const auto valid = valid_utf8(text);
  if (valid != text) {
    const auto at = std::mismatch(text.begin(), text.end(), valid.begin(), valid.end()).first;
    throw input_error(str_cat(name, ": is not UTF-8: ",
                              at == text.end() ? std::string("it ends inside a character")
                                               : "byte " + hex_byte(*at),
                              " at offset ", at - text.begin()),
                      "convert it first, for example with iconv -f latin1 -t utf-8");
  }
  return text;
}

}  // namespace onset::app
