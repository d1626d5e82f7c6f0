// Faults of other tools (rows 1 and 2 of CASES.md) as a mask meets them: the toys of the rows, and
// what MaskObserver is told of each masked token.
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "onset/model/decoder.h"
#include "onset/wemask/mask.h"
#include "support/tensors.h"
#include "support/toy.h"

namespace onset::testing {
namespace {

using Dims = std::vector<std::int64_t>;

constexpr Tolerance exact_enough{.atol = 1e-5, .rtol = 1e-5};
const Dims masked_dims{1, 5};

class MaskCases : public ::testing::Test {
 protected:
  static Model open_toy(const std::filesystem::path& folder) {
    Toy toy;
    toy.draw();
    toy.write(folder);
    return Model::open(folder);
  }
  // Dims {1, 5} of the first token, in both layers.
  [[nodiscard]] MaskSpec mask() const {
    return make_mask(model_, {.criterion = MaskCriterion::given,
                              .from_layer = 0,
                              .given = {{0, masked_dims}, {1, masked_dims}}});
  }
  [[nodiscard]] at::Tensor logits(const std::vector<SequenceInput>& batch, const Hooks& hooks,
                                  LogitRows rows = LogitRows::last) const {
    return model_.decoder().forward(batch, rows, &hooks).logits;
  }

  c10::InferenceMode inference_;
  TemporaryFolder folder_;
  Model model_ = open_toy(folder_.path());
};

// Row 1: with a cache the mask hits the prefill's first token and no decoded one; decoding equals
// recomputation.
TEST_F(MaskCases, DecodingMasksNothingAndEqualsRecomputation) {
  std::int64_t masked_elements = 0;
  Hooks counted(2);
  add_mask(counted, mask(), model_,
           [&](const SiteContext& context, std::int64_t row, const Dims& dims,
               std::span<const float> input) {
             EXPECT_EQ(context.sequences.front().position + row, 0);
             EXPECT_EQ(dims, masked_dims);
             EXPECT_EQ(input.size(), 8U);
             masked_elements += static_cast<std::int64_t>(dims.size());
           });
  Hooks hooks(2);
  add_mask(hooks, mask(), model_);
  std::vector<std::int64_t> sequence{3, 7, 9, 4};
  std::vector<std::int64_t> next = sequence;
  KvCache cache = model_.decoder().new_cache();
  for (int step = 0; step < 6; ++step) {
    masked_elements = 0;
    const at::Tensor found = logits({{.ids = next, .cache = &cache}}, counted);
    EXPECT_EQ(masked_elements, step == 0 ? 4 : 0)
        << "two dims a layer in the prefill, step " << step;
    EXPECT_TRUE(close(found, logits({{.ids = sequence}}, hooks), exact_enough)) << "step " << step;
    next = {found[0].argmax().item<std::int64_t>()};
    sequence.push_back(next.front());
  }
}

// What the mask does to the attention input, by the definition: dims 1 and 5 of the first row are
// zero, the rest is the norm's output.
TEST_F(MaskCases, TheMaskedDimsAreZeroAndTheOthersAsTheyWere) {
  Hooks masked(2);
  add_mask(masked, mask(), model_);
  Hooks plain(2);
  SiteSet first_norm(2);
  first_norm.add({SiteKind::attn_norm, 0});
  at::Tensor after;
  at::Tensor before;
  masked.observe(first_norm, [&](const SiteContext&, const at::Tensor& x) { after = x; });
  plain.observe(first_norm, [&](const SiteContext&, const at::Tensor& x) { before = x; });
  static_cast<void>(logits({{.ids = {3, 7, 9, 4}}}, masked));
  static_cast<void>(logits({{.ids = {3, 7, 9, 4}}}, plain));
  at::Tensor expected = before.clone();
  for (const std::int64_t dim : masked_dims) {
    EXPECT_NE(before[0][dim].item<float>(), 0.0F);
    expected[0][dim] = 0;
  }
  EXPECT_TRUE(at::equal(after, expected));
}

// Row 2: ["a", "a b c d"] padded on the left: the masked columns are 3 and 0, and each row is what
// it is alone.
TEST_F(MaskCases, TheFirstAttendedTokenOfALeftPaddedRowIsMasked) {
  const std::int64_t width = 4;
  const std::vector<std::int64_t> ids{0, 0, 0, 5, 5, 6, 7, 8};
  const std::vector<std::int64_t> attended{0, 0, 0, 1, 1, 1, 1, 1};
  const auto batch = sequences_of_padded(ids, attended, width);
  ASSERT_EQ(batch.size(), 2U);
  // Column of the padded batch that a packed row stands in.
  const auto column = [&](const SequenceRows& sequence, std::int64_t row) {
    return width - sequence.count + (row - sequence.row);
  };
  std::vector<std::vector<std::int64_t>> columns(2);
  Hooks hooks(2);
  add_mask(hooks, mask(), model_,
           [&](const SiteContext& context, std::int64_t row, const Dims&, std::span<const float>) {
             for (std::size_t s = 0; s < context.sequences.size(); ++s) {
               const SequenceRows& sequence = context.sequences[s];
               const bool inside = row >= sequence.row && row < sequence.row + sequence.count;
               if (inside && context.site.layer == 0) columns[s].push_back(column(sequence, row));
             }
           });
  const at::Tensor together = logits(batch, hooks);
  EXPECT_EQ(columns[0], (std::vector<std::int64_t>{3}));
  EXPECT_EQ(columns[1], (std::vector<std::int64_t>{0}));
  Hooks quiet(2);
  add_mask(quiet, mask(), model_);
  EXPECT_TRUE(close(together[0], logits({{.ids = {5}}}, quiet)[0], exact_enough));
  EXPECT_TRUE(close(together[1], logits({{.ids = {5, 6, 7, 8}}}, quiet)[0], exact_enough));
}

// As the released code: the first token of each chunk given, and so every decoded one.
TEST_F(MaskCases, OfficialCompatMasksEveryDecodedToken) {
  MaskSpec spec = make_mask(model_, {.k = 2, .from_layer = 0, .official_compat = true});
  EXPECT_EQ(spec.criterion, MaskCriterion::activation);
  std::int64_t masked_rows = 0;
  std::int64_t expected_row = 0;
  Hooks hooks(2);
  add_mask(hooks, spec, model_,
           [&](const SiteContext&, std::int64_t row, const Dims& dims, std::span<const float> x) {
             EXPECT_EQ(row, expected_row);
             EXPECT_EQ(dims.size(), 2U);
             // The largest of the token's own, by going through all pairs.
             for (std::int64_t d = 0; d < 8; ++d) {
               if (d == dims[0] || d == dims[1]) continue;
               for (const std::int64_t chosen : dims) {
                 EXPECT_GE(std::fabs(x[static_cast<std::size_t>(chosen)]),
                           std::fabs(x[static_cast<std::size_t>(d)]));
               }
             }
             ++masked_rows;
           });
  KvCache cache = model_.decoder().new_cache();
  static_cast<void>(logits({{.ids = {3, 7, 9, 4}, .cache = &cache}}, hooks));
  EXPECT_EQ(masked_rows, 2);
  for (const std::int64_t id : {6, 2, 11}) {
    static_cast<void>(logits({{.ids = {id}, .cache = &cache}}, hooks));
  }
  EXPECT_EQ(masked_rows, 2 + 3 * 2);
}

// Averaged over the batch: rows of one call share their dims, those of the mean |attn_norm|.
TEST_F(MaskCases, OfficialCompatChoosesForTheWholeBatch) {
  const MaskSpec spec = make_mask(model_, {.k = 3, .from_layer = 0, .official_compat = true});
  std::vector<double> sum(8, 0.0);
  std::vector<Dims> chosen;
  Hooks hooks(2);
  add_mask(
      hooks, spec, model_,
      [&](const SiteContext& context, std::int64_t, const Dims& dims, std::span<const float> x) {
        if (context.site.layer != 0) return;
        chosen.push_back(dims);
        for (std::size_t d = 0; d < 8; ++d) sum[d] += std::fabs(x[d]);
      });
  static_cast<void>(logits({{.ids = {3, 7}}, {.ids = {12, 4, 9}}, {.ids = {20}}}, hooks));
  ASSERT_EQ(chosen.size(), 3U);
  EXPECT_EQ(chosen[0], chosen[1]);
  EXPECT_EQ(chosen[0], chosen[2]);
  std::vector<std::int64_t> order{0, 1, 2, 3, 4, 5, 6, 7};
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return sum[static_cast<std::size_t>(a)] > sum[static_cast<std::size_t>(b)];
  });
  EXPECT_EQ(chosen[0], Dims(order.begin(), order.begin() + 3));
}

}  // namespace
}  // namespace onset::testing
