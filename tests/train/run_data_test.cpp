// The data of a run: what is held out.
#include "onset/train/run_data.h"

#include <gtest/gtest.h>

#include "support/support.h"

namespace onset::testing {
namespace {

// Of two completions of one prompt, which a hash cannot part.
class HoldOut : public ::testing::Test {
 protected:
  [[nodiscard]] RunData read(std::int64_t hold_out, std::string_view prompt) const {
    TrainSettings settings = default_settings(TrainMethod::dpo);
    const std::string row = "{\"prompt_ids\": " + std::string(prompt) +
                            ", \"chosen_ids\": [5, 2], \"rejected_ids\": [6, 2]}\n";
    settings.data.train_file = folder_.write("pairs.jsonl", row + row).string();
    settings.data.hold_out = hold_out;
    return read_run_data(settings, {.vocabulary = 300});
  }

  TemporaryFolder folder_;
};

TEST_F(HoldOut, NothingHeldOutOrNothingLeftSaysWhatToDo) {
  bool none_held_out = false;
  bool none_left = false;
  for (int id = 3; id < 40; ++id) {
    const std::string message = error_of([&] { (void)read(2, "[1, " + std::to_string(id) + "]"); });
    if (message.find("none is held out by hold_out 2") != std::string::npos) {
      none_held_out = true;
      EXPECT_NE(message.find("make it smaller"), std::string::npos) << message;
    } else {
      none_left = true;
      EXPECT_NE(message.find("keeps all of its 2 examples"), std::string::npos) << message;
      EXPECT_NE(message.find("make hold_out larger"), std::string::npos) << message;
    }
    EXPECT_NE(message.find("eval_file"), std::string::npos) << message;
  }
  EXPECT_TRUE(none_held_out);
  EXPECT_TRUE(none_left);
}

}  // namespace
}  // namespace onset::testing
