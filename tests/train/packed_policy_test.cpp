// Documents that stand in one row are what each is alone, under a mask too: the first token of
// every document is masked, and none sees another.
#include "onset/train/completion_logps.h"
#include "support/tensors.h"
#include "train/run_support.h"

namespace onset::testing {
namespace {

SftExample document(const TokenIds& ids) {
  SftExample example{.ids = ids, .trained = std::vector<std::uint8_t>(ids.size(), 1)};
  example.trained.front() = 0;
  return example;
}

class PackedDocuments : public ::testing::TestWithParam<const char*> {};

TEST_P(PackedDocuments, AreWhatTheyAreAloneUnderTheMask) {
  FullPolicy full(onset::testing::data("models/" + std::string(GetParam())),
                  Json{{"k", 8}, {"first_layer", 1}, {"mode", "frozen"}});
  // [a b][c d e] with the token that becomes massive in both places.
  const std::vector<SftExample> documents{document({1, 9}), document({1, 17, 30})};
  const auto logps = [&](const std::vector<SftExample>& examples, bool masked) {
    return full.policy.logps(pointers_to(examples), {.masked = masked}).values.detach().clone();
  };
  const at::Tensor together = logps(documents, true);
  const at::Tensor alone = at::cat({logps({documents[0]}, true), logps({documents[1]}, true)});
  EXPECT_TRUE(close(together, alone, {.atol = 1e-5, .rtol = 1e-5}));
  // The mask changes each of the documents, so that the equality above says something.
  const at::Tensor unmasked = logps(documents, false);
  const at::Tensor change = (together - unmasked).abs();
  EXPECT_GT(change.narrow(0, 0, 1).max().item<double>(), 1e-3);
  EXPECT_GT(change.narrow(0, 1, 2).max().item<double>(), 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Models, PackedDocuments, ::testing::Values("llama_me", "qwen3_me"),
                         [](const auto& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace onset::testing
