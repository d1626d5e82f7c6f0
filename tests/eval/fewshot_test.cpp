#include "onset/eval/fewshot.h"

#include <gtest/gtest.h>

#include "onset/eval/python_random.h"
#include "support/support.h"

namespace onset {
namespace {

using Indices = std::vector<std::size_t>;
using testing::error_of;

// What Python 3.11 prints for random.Random(seed).sample(range(n), k), one call after the other.
TEST(PythonRandom, DrawsWhatPythonDraws) {
  PythonRandom train(1234);
  EXPECT_EQ(train.sample(7473, 5), (Indices{6374, 3610, 957, 61, 742}));
  EXPECT_EQ(train.sample(7473, 5), (Indices{7462, 6610, 4769, 286, 5501}));
  PythonRandom sizes(1234);
  EXPECT_EQ(sizes.sample(10, 4), (Indices{7, 1, 0, 9}));
  EXPECT_EQ(sizes.sample(21, 3), (Indices{18, 1, 2}));
  EXPECT_EQ(sizes.sample(85, 6), (Indices{12, 45, 30, 2, 3, 81}));
  EXPECT_EQ(sizes.sample(86, 6), (Indices{44, 82, 79, 61, 78, 59}));
  EXPECT_EQ(sizes.sample(300, 20), (Indices{76,  46, 93, 58,  7,   257, 249, 127, 33, 277,
                                            238, 35, 45, 263, 296, 23,  138, 284, 32, 154}));
  PythonRandom zero(0);
  EXPECT_EQ(zero.sample(5, 5), (Indices{3, 4, 0, 1, 2}));
  EXPECT_EQ(zero.sample(1000, 3), (Indices{414, 940, 802}));
  EXPECT_EQ(PythonRandom((std::uint64_t{1} << 40) + 3).sample(1000, 3), (Indices{225, 62, 562}));
  PythonRandom many(7);
  Indices last;
  for (int i = 0; i < 300; ++i) last = many.sample(100000, 5);
  EXPECT_EQ(last, (Indices{55802, 51014, 86355, 48162, 58561}));
}

// Python: r = random.Random(3); the first sample(range(6), 3) is [1, 4, 5], of which lm-eval drops
// the document, number 4, and keeps two.
TEST(FewshotPicker, OfItsOwnPoolTheDocumentIsLeftOut) {
  FewshotPicker picker(FewshotSampler::random, 6, true, 3);
  EXPECT_EQ(picker.pick(
                2, [](std::size_t i) { return i == 4; }, "t"),
            (Indices{1, 5}));
}

TEST(FewshotPicker, ADocumentIsNeverAmongItsExamples) {
  for (const bool own : {false, true}) {
    FewshotPicker picker(FewshotSampler::random, 7, own, 1234);
    for (std::size_t document = 0; document < 7; ++document) {
      const auto rows = picker.pick(
          6, [&](std::size_t i) { return i == document; }, "t");
      Indices sorted = rows;
      std::sort(sorted.begin(), sorted.end());
      Indices others;
      for (std::size_t i = 0; i < 7; ++i) {
        if (i != document) others.push_back(i);
      }
      EXPECT_EQ(sorted, others) << "own " << own << " document " << document;
    }
  }
}

TEST(FewshotPicker, TheFirstAreTheFirstThatAreNotTheDocument) {
  FewshotPicker picker(FewshotSampler::first_n, 4, false, 0);
  EXPECT_EQ(picker.pick(
                2, [](std::size_t i) { return i == 0; }, "t"),
            (Indices{1, 2}));
  EXPECT_EQ(picker.pick(
                2, [](std::size_t) { return false; }, "t"),
            (Indices{0, 1}));
  EXPECT_TRUE(picker
                  .pick(
                      0, [](std::size_t) { return false; }, "t")
                  .empty());
}

TEST(FewshotPicker, MoreExamplesThanThereAreIsAnError) {
  for (const auto sampler : {FewshotSampler::random, FewshotSampler::first_n}) {
    FewshotPicker picker(sampler, 5, false, 0);
    EXPECT_EQ(error_of([&] {
                return picker.pick(
                    5, [](std::size_t i) { return i == 2; }, "task mmlu, dev.csv:3");
              }),
              "task mmlu, dev.csv:3: 5 examples are asked for, and 4 are there beside the document "
              "itself (5 rows)\ngive a smaller --num-fewshot, or the task's file a smaller "
              "fewshot.count");
    EXPECT_NE(error_of([&] {
                return picker.pick(
                    6, [](std::size_t) { return false; }, "task mmlu");
              }).find("6 examples are asked for, and 5 are there\n"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace onset
