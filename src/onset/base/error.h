// Errors that end a request: a message that says what is wrong and where, and a hint that says what
// to do next. Expected outcomes are return values; asserts are for our own mistakes only.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace onset {

enum class ErrorKind {
  usage,     // wrong options or arguments: exit code 2
  input,     // a file, a model or data that cannot be used: exit code 1
  resource,  // the system refused: disk full, no memory, no permission: exit code 1
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message, std::string hint = {})
      : std::runtime_error(message), kind_(kind), hint_(std::move(hint)) {}

  [[nodiscard]] ErrorKind kind() const { return kind_; }
  // What the user can do next; may be empty.
  [[nodiscard]] const std::string& hint() const { return hint_; }

 private:
  ErrorKind kind_;
  std::string hint_;
};

// Joins its arguments as `<<` prints them.
template <typename... Parts>
[[nodiscard]] std::string str_cat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

[[nodiscard]] inline Error usage_error(const std::string& message, std::string hint = {}) {
  return {ErrorKind::usage, message, std::move(hint)};
}
[[nodiscard]] inline Error input_error(const std::string& message, std::string hint = {}) {
  return {ErrorKind::input, message, std::move(hint)};
}
[[nodiscard]] inline Error resource_error(const std::string& message, std::string hint = {}) {
  return {ErrorKind::resource, message, std::move(hint)};
}

// Throws an input error unless `condition` holds. For checks of files and data, never for our own
// mistakes. The parts are joined only when the check fails.
template <typename... Parts>
void require_input(bool condition, const Parts&... parts) {
  if (!condition) throw input_error(str_cat(parts...));
}

}  // namespace onset
