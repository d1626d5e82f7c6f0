#pragma once

#include <gtest/gtest.h>

#include "onset/base/error.h"

namespace onset::testing {

template <typename Action>
std::string error_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what() + (error.hint().empty() ? "" : "\n" + error.hint());
  } catch (...) {
    ADD_FAILURE() << "not an onset::Error: " << describe_current_exception();
    return {};
  }
  ADD_FAILURE() << "no error was thrown";
  return {};
}

}  // namespace onset::testing
