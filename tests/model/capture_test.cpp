#include "onset/model/capture.h"

#include <gtest/gtest.h>

#include <limits>

#include "onset/model/model.h"
#include "support/support.h"
#include "support/tensors.h"
#include "support/toy.h"

namespace onset::testing {
namespace {

struct Captured {
  TemporaryFolder folder;
  std::vector<std::string> warnings;

  std::filesystem::path run(const Toy& toy, const std::string& sites) {
    toy.write(folder.path());
    const Log log{.warn = [this](const std::string& text) { warnings.push_back(text); },
                  .progress = {}};
    const auto path = folder.path() / "states.safetensors";
    const auto summary = capture(Model::open(folder.path()), {{1, 2, 3}, {4, 5}},
                                 SiteSet::parse(sites, 2), path, log);
    EXPECT_GT(summary.tensors, 0);
    return path;
  }
};

// What is written satisfies the formulas that join the sites.
TEST(Capture, SitesOfAFileFitTogether) {
  Toy toy;
  toy.draw();
  Captured captured;
  const ReferenceTensors file(captured.run(toy, "layers.*.*,embed,final_norm,logits"));
  EXPECT_TRUE(captured.warnings.empty());
  for (const std::string prompt : {"0.", "1."}) {
    for (const std::string layer : {"layers.0.", "layers.1."}) {
      const std::string at = prompt + layer;
      EXPECT_TRUE(at::equal(
          (file.get(at + "resid_pre") + file.get(at + "attn_out")) + file.get(at + "ffn_out"),
          file.get(at + "resid_post")));
      EXPECT_TRUE(close(at::softmax(file.get(at + "attn_scores"), -1), file.get(at + "attn_probs"),
                        {.atol = 1e-6, .rtol = 1e-6}));
    }
    EXPECT_TRUE(at::equal(file.get(prompt + "layers.0.resid_post"),
                          file.get(prompt + "layers.1.resid_pre")));
  }
  EXPECT_EQ(file.ids("1.ids"), (std::vector<std::int64_t>{4, 5}));
}

TEST(Capture, SaysOnceThatASiteHoldsNan) {
  Toy toy;
  toy.draw();
  toy.values["model.layers.1.mlp.down_proj.weight"][3] = std::numeric_limits<float>::quiet_NaN();
  Captured captured;
  static_cast<void>(captured.run(toy, "layers.*.resid_post,logits"));
  ASSERT_EQ(captured.warnings.size(), 1U);
  EXPECT_NE(captured.warnings.front().find("layers.1.resid_post"), std::string::npos);
}

}  // namespace
}  // namespace onset::testing
