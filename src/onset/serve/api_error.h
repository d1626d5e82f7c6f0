// What a client did wrong, as OpenAI's API says it: {"error": {"message", "type", "param",
// "code"}}. Torch-free.
#pragma once

#include <stdexcept>
#include <string>

#include "onset/base/json.h"

namespace onset {

class ApiError : public std::runtime_error {
 public:
  struct Details {
    int status = 400;
    std::string type = "invalid_request_error";
    std::string param = {};  // the field; empty for null
    std::string code = {};   // empty for null
    int retry_after = 0;     // seconds; with 429 and 503
  };
  ApiError(const std::string& message, Details details)
      : std::runtime_error(message), details_(std::move(details)) {}

  [[nodiscard]] const Details& details() const { return details_; }
  [[nodiscard]] OrderedJson json() const;

 private:
  Details details_;
};

// 400: the field `param` (a path such as messages[2].role; may be empty) cannot be taken.
[[nodiscard]] ApiError bad_field(const std::string& param, const std::string& message);
// 400: a part of OpenAI's API that onset does not have.
[[nodiscard]] ApiError unsupported_field(const std::string& param, const std::string& message);

// The exception being handled, as what a client is told: ApiError as it is, the library's usage and
// input errors as 400 on `param`, anything else as 500. Call in a catch block only.
[[nodiscard]] ApiError current_api_error(const std::string& param = {});

}  // namespace onset
