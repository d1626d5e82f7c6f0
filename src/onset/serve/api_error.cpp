#include "onset/serve/api_error.h"

#include <exception>
#include <new>

#include "onset/base/error.h"

namespace onset {
namespace {

OrderedJson text_or_null(const std::string& text) {
  return text.empty() ? OrderedJson(nullptr) : OrderedJson(valid_utf8(text));
}

ApiError server_error(const std::string& message, int status = 500) {
  return {message, {.status = status, .type = "server_error", .code = "internal_error"}};
}

}  // namespace

OrderedJson ApiError::json() const {
  return {{"error",
           {{"message", valid_utf8(what())},
            {"type", details_.type},
            {"param", text_or_null(details_.param)},
            {"code", text_or_null(details_.code)}}}};
}

ApiError bad_field(const std::string& param, const std::string& message) {
  return {message, {.param = param, .code = "invalid_value"}};
}

ApiError unsupported_field(const std::string& param, const std::string& message) {
  return {message, {.param = param, .code = "unsupported_parameter"}};
}

ApiError current_api_error(const std::string& param) {
  try {
    throw;
  } catch (const ApiError& error) {
    return error;
  } catch (const Error& error) {
    const std::string message =
        error.hint().empty() ? error.what() : str_cat(error.what(), " (", error.hint(), ")");
    return error.kind() == ErrorKind::resource ? server_error(message) : bad_field(param, message);
  } catch (const std::bad_alloc&) {
    return server_error("out of memory", 503);
  } catch (const std::exception& error) {
    // libtorch's messages carry a stack trace behind their first line.
    const std::string text = error.what();
    return server_error(text.substr(0, text.find('\n')));
  } catch (...) {
    return server_error("an unknown error");
  }
}

}  // namespace onset
