// Packing, and the order of data.
#include "onset/train/packing.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "onset/train/data_order.h"
#include "train/data_support.h"

namespace onset::testing {
namespace {

using Lists = std::vector<std::vector<TokenIds>>;

std::vector<SftExample> examples_of(const std::vector<TokenIds>& lists) {
  std::vector<SftExample> examples;
  for (const auto& ids : lists) {
    SftExample example{.ids = ids, .trained = std::vector<std::uint8_t>(ids.size(), 1)};
    example.trained.front() = 0;
    examples.push_back(std::move(example));
  }
  return examples;
}

Lists ids_of(const Packed& packed) {
  Lists lists;
  for (const auto& row : packed.rows) {
    lists.emplace_back();
    for (const auto& document : row) lists.back().push_back(document.ids);
  }
  return lists;
}

// The example in the documentation of TRL's pack_dataset, with documents of two tokens where one
// token would have nothing to train.
TEST(Packing, BestFitDecreasingAsInTrl) {
  const std::vector<TokenIds> lists = {{1, 2, 3, 4, 5, 51}, {6, 7}, {8, 9}, {10, 11}};
  const auto cut = pack(examples_of(lists), 4, PackingStrategy::bfd);
  EXPECT_EQ(ids_of(cut), (Lists{{{1, 2, 3, 4}}, {{6, 7}, {8, 9}}, {{10, 11}}}));
  EXPECT_EQ(cut.tokens_cut, 2);
  EXPECT_EQ(cut.tokens, 10);
  const auto split = pack(examples_of(lists), 4, PackingStrategy::bfd_split);
  EXPECT_EQ(ids_of(split), (Lists{{{1, 2, 3, 4}}, {{5, 51}, {6, 7}}, {{8, 9}, {10, 11}}}));
  EXPECT_EQ(split.tokens_cut, 0);
  EXPECT_EQ(split.pieces, 1);
  EXPECT_DOUBLE_EQ(split.filled(4), 1.0);
}

// Lengths 7 5 4 3 2 in rows of 10: the 3 goes to the row of 7 (room 3), the 2 nowhere but to a new
// row, since 5 + 4 leaves 1.
TEST(Packing, ADocumentGoesWhereTheLeastRoomIsLeft) {
  std::vector<TokenIds> lists;
  for (const std::size_t length : {3U, 5U, 2U, 7U, 4U}) {
    lists.emplace_back(length, static_cast<std::int64_t>(length));
  }
  std::vector<std::vector<std::size_t>> lengths;
  for (const auto& row : pack(examples_of(lists), 10, PackingStrategy::bfd).rows) {
    lengths.emplace_back();
    for (const auto& document : row) lengths.back().push_back(document.ids.size());
  }
  EXPECT_EQ(lengths, (std::vector<std::vector<std::size_t>>{{7, 3}, {5, 4}, {2}}));
}

TEST(Packing, WrappedFillsEveryRowAndBeginsADocumentAnewInTheNext) {
  const auto packed = pack(examples_of({{1, 2, 3}, {4, 5, 6, 7, 8}}), 4, PackingStrategy::wrapped);
  // "4" alone at the end of the first row would have nothing to train.
  EXPECT_EQ(ids_of(packed), (Lists{{{1, 2, 3}}, {{5, 6, 7, 8}}}));
  EXPECT_EQ(packed.rows[1][0].trained, (std::vector<std::uint8_t>{0, 1, 1, 1}));
  EXPECT_EQ(packed.tokens_cut, 1);
}

TEST(Packing, LosesAndDoublesNothing) {
  std::vector<TokenIds> lists;
  std::int64_t next = 0;
  for (std::size_t i = 0; i < 200; ++i) {
    TokenIds ids(2 + i * 7 % 31);
    std::iota(ids.begin(), ids.end(), next);
    next += static_cast<std::int64_t>(ids.size());
    lists.push_back(std::move(ids));
  }
  for (const auto strategy :
       {PackingStrategy::bfd, PackingStrategy::bfd_split, PackingStrategy::wrapped}) {
    const auto packed = pack(examples_of(lists), 40, strategy);
    std::set<std::int64_t> seen;
    for (const auto& row : packed.rows) {
      std::size_t length = 0;
      for (const auto& document : row) {
        length += document.ids.size();
        seen.insert(document.ids.begin(), document.ids.end());
        EXPECT_EQ(document.trained.front(), 0);
      }
      EXPECT_LE(length, 40U);
    }
    EXPECT_EQ(static_cast<std::int64_t>(seen.size()), packed.tokens);
    EXPECT_EQ(packed.tokens + packed.tokens_cut, next);
    EXPECT_GT(packed.filled(40), 0.9);
  }
  EXPECT_NE(error_of([] { (void)pack({}, 1, PackingStrategy::bfd); }).find("2 or more"),
            std::string::npos);
}

TEST(DataOrder, EveryEpochIsAnotherOrderOfAllExamples) {
  const auto first = epoch_order(50, 7, 0);
  const auto second = epoch_order(50, 7, 1);
  EXPECT_NE(first, second);
  EXPECT_NE(first, epoch_order(50, 8, 0));
  EXPECT_EQ(first, epoch_order(50, 7, 0));
  for (auto order : {first, second}) {
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, epoch_order(50, std::nullopt, 0));
  }
}

// All 24 orders of four come about equally often: chi-square with 23 degrees of freedom, whose
// 99.9 % point is 49.7.
TEST(DataOrder, FavoursNoOrder) {
  std::map<std::vector<std::int64_t>, int> counts;
  constexpr int draws = 24000;
  constexpr double expected = draws / 24.0;
  for (std::int64_t epoch = 0; epoch < draws; ++epoch) ++counts[epoch_order(4, 1, epoch)];
  double chi_square = 0;
  for (const auto& [order, count] : counts) {
    chi_square += (count - expected) * (count - expected) / expected;
  }
  EXPECT_EQ(counts.size(), 24U);
  EXPECT_LT(chi_square, 49.7);
}

TEST(DataCursor, GoesOnWhereARunStopped) {
  DataCursor whole(10, 3);
  std::vector<std::int64_t> all;
  std::vector<DataPosition> positions;
  for (int step = 0; step < 9; ++step) {  // steps of 4, 4 and 2 make an epoch
    positions.push_back(whole.position());
    const auto taken = whole.take(4);
    EXPECT_EQ(taken.size(), step % 3 == 2 ? 2U : 4U);
    all.insert(all.end(), taken.begin(), taken.end());
  }
  EXPECT_EQ(whole.position(), (DataPosition{3, 0}));
  EXPECT_DOUBLE_EQ(whole.epochs(), 3.0);
  EXPECT_EQ(positions[4], (DataPosition{1, 4}));
  DataCursor resumed(10, 3, positions[4]);
  const auto taken = resumed.take(4);
  EXPECT_TRUE(std::equal(taken.begin(), taken.end(), all.begin() + 14));
  EXPECT_NE(error_of([] {
              (void)DataCursor(10, 3, {0, 10});
            }).find("not those that it began with"),
            std::string::npos);
}

TEST(HeldOut, IsAboutOnePart) {
  constexpr int prompts = 5000;
  std::int64_t held = 0;
  for (int i = 0; i < prompts; ++i) held += is_held_out("prompt " + std::to_string(i), 10) ? 1 : 0;
  EXPECT_NEAR(static_cast<double>(held), 500, 4 * std::sqrt(prompts * 0.1 * 0.9));
}

}  // namespace
}  // namespace onset::testing
