// The perplexity of WikiText under every mask of the reference, and without one on all of its
// windows (tests/data/smollm2/README.md: the summed loss of a window within 1e-4 of itself).
#include <gtest/gtest.h>

#include "onset/massive/perplexity.h"
#include "support/smollm2_masks.h"

namespace onset::testing {
namespace {

class TextPerplexity : public Smollm2Masks {
 protected:
  void expect_windows(std::size_t windows, const Hooks* masked, const std::string& name) const {
    const OrderedJson& expected = reference_.at("configs").at(name).at("nll_per_window");
    const std::size_t tokens = std::min(windows * 512, text_.size());
    const auto found = score_text(*model_, std::span(text_).first(tokens), {.window = 512}, masked);
    ASSERT_EQ(found.nll_per_window.size(), windows) << name;
    ASSERT_GE(expected.size(), windows) << name;
    for (std::size_t w = 0; w < windows; ++w) {
      const auto nll = expected[w].get<double>();
      EXPECT_NEAR(found.nll_per_window[w], nll, 1e-4 * nll) << name << " window " << w;
    }
  }

  OrderedJson reference_ =
      OrderedJson::parse(read_file(onset::testing::data("smollm2/perplexity.json")));
  std::vector<std::int64_t> text_ = [] {
    const ReferenceTensors file(onset::testing::data("smollm2/wikitext_ids.safetensors"));
    const at::Tensor ids = file.get("ids").to(at::kLong).contiguous();
    const auto* first = ids.const_data_ptr<std::int64_t>();
    return std::vector<std::int64_t>(first, first + ids.numel());
  }();
};

class MaskedPerplexity : public TextPerplexity,
                         public ::testing::WithParamInterface<const char*> {};

TEST_P(MaskedPerplexity, EqualsTheReferenceOnFourWindows) {
  const auto names = names_of(reference_.at("configs"), GetParam());
  ASSERT_GE(names.size(), 6U);
  for (const auto& name : names) {
    const auto masked = masking(mask(reference_.at("configs").at(name).at("mask")), *model_);
    expect_windows(4, masked.get(), name);
  }
}

INSTANTIATE_TEST_SUITE_P(Criteria, MaskedPerplexity,
                         ::testing::Values("weight", "activation", "lowest_weight", "random"),
                         [](const auto& parameter) { return std::string(parameter.param); });

TEST_F(TextPerplexity, EqualsTheReferenceOnAllWindows) { expect_windows(40, nullptr, "none"); }

}  // namespace
}  // namespace onset::testing
