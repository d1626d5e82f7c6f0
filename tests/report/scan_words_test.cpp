// Captions of a scan say what its numbers say: a wall where there is one, a step that is none, and
// no flat rest where the rest stands high.
#include "onset/report/scan_words.h"

#include <gtest/gtest.h>

namespace onset::testing {
namespace {

// A prompt whose drawn token has these largest entries after its layers.
struct Heights {
  PromptScan prompt;
  PromptStates states;

  Heights(const std::vector<float>& heights, std::optional<std::int64_t> born,
          std::optional<std::int64_t> last) {
    const auto layers = static_cast<std::int64_t>(heights.size());
    prompt.me_layer = born;
    prompt.last_massive_layer = last;
    std::vector<float> matrix;
    for (const float height : heights) matrix.insert(matrix.end(), {0.5F, -height, 0.25F});
    states.layers = block_maxima(matrix, divide_evenly(layers, layers), divide_evenly(3, 3));
  }
  [[nodiscard]] std::string words() const { return wall_words(prompt, states); }
};

TEST(WallWords, TellTheStepThePlateauAndTheFall) {
  EXPECT_EQ(Heights({20, 30, 24000, 23500, 24500, 9000}, 2, 4).words(),
            "Its largest entry goes from 30 after layer 1 to 24,000 after layer 2, 800 times as "
            "much: the wall of a massive activation; the residual stream carries it on at 23,500 "
            "to 24,500 up to layer 4, and layer 5 takes it down to 9000.");
}

TEST(WallWords, ToTheEndOfTheModel) {
  EXPECT_EQ(Heights({5, 500}, 1, 1).words(),
            "Its largest entry goes from 5 after layer 0 to 500 after layer 1, 100 times as much: "
            "the wall of a massive activation, the end of the model.");
}

TEST(WallWords, NoStepWhereItGrewBefore) {
  const auto words = Heights({400, 700, 1200, 1100}, 2, 2).words();
  EXPECT_NE(words.find("it passes the rule there without a step of its own"), std::string::npos)
      << words;
  // 1100 is more than half of 1200: nothing takes it down.
  EXPECT_TRUE(
      words.ends_with(", and after layer 3 it is 1100, which the rule no longer calls "
                      "massive."))
      << words;
  EXPECT_EQ(words.find("wall"), std::string::npos) << words;
}

TEST(WallWords, BornInTheFirstLayer) {
  EXPECT_TRUE(Heights({900, 900}, 0, 1)
                  .words()
                  .starts_with("Its largest entry is 900 already after layer 0; the residual "
                               "stream carries it on at 900 up "
                               "to layer 1"));
}

TEST(WallWords, WithoutMeLayer) {
  EXPECT_EQ(Heights({3, 9, 7}, std::nullopt, std::nullopt).words(),
            "A massive activation would be a wall that rises in one layer and stays; here no entry "
            "passes the rule, and the token's largest is 9, after layer 1.");
}

BlockMaxima points(const std::vector<float>& values) {
  const auto count = static_cast<std::int64_t>(values.size());
  return block_maxima(values, divide_evenly(1, 1), divide_evenly(count, count));
}

TEST(FlatnessWords, FollowTheShareOfHighPoints) {
  EXPECT_EQ(flatness_words(points({100, 1, 2, 3})), ", and at this scale all else lies flat");
  // A twentieth of 100 is reached by 5 and by -60.
  EXPECT_EQ(flatness_words(points({100, 5, -60, 3})),
            "; of the other 3 points 2 reach a twentieth of it");
  std::vector<float> many(1001, 1.0F);
  many[0] = 1000;
  many[7] = 50;
  EXPECT_EQ(
      flatness_words(points(many)),
      "; of the other 1000 points 1 reaches a twentieth of it, and all else lies flat at this "
      "scale");
  EXPECT_EQ(flatness_words(points({7})), "");
}

}  // namespace
}  // namespace onset::testing
