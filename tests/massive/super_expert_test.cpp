// A super expert (Su et al. 2507.23279): one expert whose output matrix is made so that the first
// token gets a massive entry from it. What it adds follows from how it was made.
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <map>

#include "onset/massive/scan.h"
#include "onset/model/decoder.h"
#include "support/support.h"
#include "support/tensors.h"

namespace onset::testing {
namespace {

constexpr std::int64_t planted_layer = 1;
constexpr std::int64_t planted_dim = 7;
constexpr float planted_value = 40'000.0F;  // before the router's weight
const std::vector<std::int64_t> prompt{1, 17, 99, 4, 56, 23};

// What the fixture's model shows at layer 1: the first token's experts, their weights and products.
struct FirstToken {
  std::vector<std::int64_t> experts;
  std::vector<float> weights;
  std::map<std::int64_t, at::Tensor> products;  // of the experts it is sent to, all their tokens

  explicit FirstToken(const std::filesystem::path& folder) {
    const c10::InferenceMode inference;
    const Model model = Model::open(folder);
    Hooks hooks(model.config().layer_count());
    hooks.observe(
        SiteSet::parse("layers.1.router,layers.1.experts.*.product", model.config()),
        [&](const SiteContext& context, const at::Tensor& tensor) {
          if (context.site.kind == SiteKind::router_experts) {
            const at::Tensor row = tensor[0].contiguous();
            experts.assign(row.const_data_ptr<std::int64_t>(),
                           row.const_data_ptr<std::int64_t>() + row.numel());
          }
          if (context.site.kind == SiteKind::router_weights) {
            const at::Tensor row = tensor[0].contiguous();
            weights.assign(row.const_data_ptr<float>(), row.const_data_ptr<float>() + row.numel());
          }
          if (context.site.kind == SiteKind::expert_product && context.rows.front() == 0) {
            products[context.site.expert] = tensor.clone();
          }
        });
    const std::vector<SequenceInput> batch{{.ids = prompt, .cache = nullptr}};
    static_cast<void>(model.decoder().forward(batch, LogitRows::none, &hooks));
  }
};

// A row w with w . p = planted_value for the first token's product p and 0 for the other tokens'.
at::Tensor planted_row(const at::Tensor& products) {
  const at::Tensor exact = products.to(at::kDouble);
  at::Tensor wanted = at::zeros({exact.size(0), 1}, at::kDouble);
  wanted[0][0] = static_cast<double>(planted_value);
  return at::matmul(at::linalg_pinv(exact), wanted).squeeze(1).to(at::kFloat).contiguous();
}

// The fixture with row `planted_dim` of the expert's output matrix for the first token alone.
class SuperExpert : public ::testing::TestWithParam<const char*> {
 protected:
  SuperExpert() {
    const auto source = onset::testing::data("models/" + std::string(GetParam()));
    const FirstToken first(source);
    expert_ = first.experts.back();
    weight_ = first.weights.back();
    std::filesystem::copy_file(source / "config.json", folder_.path() / "config.json");
    const SafetensorsFile file = read_safetensors(source / "model.safetensors");
    const std::string tail = ".experts." + std::to_string(expert_) + ".";
    std::vector<NamedTensor> tensors;
    for (const TensorInfo& info : file.tensors) {
      const auto bytes = file.file.bytes().subspan(info.offset, info.bytes);
      tensors.push_back({info.name, info.dtype, info.shape, {bytes.begin(), bytes.end()}});
      const bool down = info.name.find("layers.1.") != std::string::npos &&
                        (info.name.ends_with(tail + "w2.weight") ||
                         info.name.ends_with(tail + "down_proj.weight"));
      if (!down) continue;
      const at::Tensor row = planted_row(first.products.at(expert_));
      const auto columns = static_cast<std::size_t>(info.shape[1]);
      std::memcpy(tensors.back().data.data() + planted_dim * columns * sizeof(float),
                  row.const_data_ptr<float>(), columns * sizeof(float));
      ++planted_;
    }
    write_safetensors(folder_.path() / "model.safetensors", tensors);
  }

  [[nodiscard]] ScanResult scanned(const std::vector<ExpertId>& without) const {
    ScanOptions options;
    options.without_experts = without;
    // The tiny random models have other large entries than real ones.
    options.min_ratio = 300;
    return scan(Model::open(folder_.path()), {{"", prompt}}, options);
  }

  TemporaryFolder folder_;
  std::int64_t expert_ = -1;
  float weight_ = 0;
  int planted_ = 0;
};

TEST_P(SuperExpert, IsFoundAndNamed) {
  ASSERT_EQ(planted_, 1);
  const ScanResult result = scanned({});
  ASSERT_EQ(result.me_layer, planted_layer);
  ASSERT_FALSE(result.stages.empty());
  const auto stage = std::find_if(result.stages.begin(), result.stages.end(),
                                  [](const Stage& s) { return s.layer == planted_layer; });
  ASSERT_NE(stage, result.stages.end());
  EXPECT_EQ(stage->token, 0);
  EXPECT_EQ(stage->dim, planted_dim);
  EXPECT_EQ(stage->experts.front().expert, expert_);
  EXPECT_NEAR(stage->experts.front().value, planted_value * weight_,
              1e-4F * planted_value * weight_);
  EXPECT_EQ(main_expert(*stage), "expert " + std::to_string(expert_));
  float sum = stage->shared_out.value_or(0.0F);
  for (const ExpertPart& part : stage->experts) sum += part.value;
  EXPECT_NEAR(sum, stage->ffn_out, 1e-5F * std::fabs(stage->ffn_out));
}

TEST_P(SuperExpert, SwitchedOffTheMassiveActivationIsGone) {
  const ScanResult result = scanned({{planted_layer, expert_}});
  EXPECT_FALSE(result.me_layer.has_value());
  for (const LayerStatistics& layer : result.prompts.front().layers) {
    EXPECT_LT(std::fabs(layer.largest.value), 100.0F) << "layer " << layer.layer;
  }
}

TEST_P(SuperExpert, AnotherOneSwitchedOffItStays) {
  const std::int64_t other = expert_ == 0 ? 1 : 0;
  EXPECT_EQ(scanned({{planted_layer, other}}).me_layer, planted_layer);
}

INSTANTIATE_TEST_SUITE_P(Mixtures, SuperExpert,
                         ::testing::Values("mixtral", "qwen3_moe", "deepseek_v2", "deepseek_v3"),
                         [](const auto& parameter) { return std::string(parameter.param); });

TEST(WithoutExperts, OneThatIsNotThereIsAUsageError) {
  const auto refusal = [](const char* fixture, ExpertId id) {
    return error_of([&] {
      ScanOptions options;
      options.without_experts = {id};
      static_cast<void>(scan(Model::open(onset::testing::data(std::string("models/") + fixture)),
                             {{"", prompt}}, options));
    });
  };
  EXPECT_NE(refusal("llama", {1, 0}).find("llama is no mixture"), std::string::npos);
  EXPECT_NE(refusal("mixtral", {3, 0}).find("layers 0 to 2"), std::string::npos);
  EXPECT_NE(refusal("mixtral", {1, 4}).find("experts 0 to 3"), std::string::npos);
  EXPECT_NE(refusal("deepseek_v3", {0, 0}).find("is dense"), std::string::npos);
}

}  // namespace
}  // namespace onset::testing
