#include "onset/base/error.h"

#include <gtest/gtest.h>

namespace onset {
namespace {

TEST(Error, CarriesKindMessageAndHint) {
  const Error error = usage_error("what is wrong", "what to do");
  EXPECT_EQ(error.kind(), ErrorKind::usage);
  EXPECT_STREQ(error.what(), "what is wrong");
  EXPECT_EQ(error.hint(), "what to do");
  EXPECT_EQ(input_error("x").kind(), ErrorKind::input);
  EXPECT_EQ(resource_error("x").kind(), ErrorKind::resource);
  EXPECT_EQ(input_error("x").hint(), "");
}

TEST(RequireInput, JoinsItsPartsOnlyWhenItFails) {
  require_input(true, "not ", "thrown");
  try {
    require_input(false, "expected ", 3, ", found ", 4.5);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "expected 3, found 4.5");
    EXPECT_EQ(error.kind(), ErrorKind::input);
  }
}

}  // namespace
}  // namespace onset
