// Runs of supervised fine-tuning against curves, gradients and weights made with plain PyTorch.
#include "onset/train/sft.h"
#include "onset/train/sft_data.h"
#include "support/tensors.h"
#include "train/data_support.h"
#include "train/run_support.h"

namespace onset {
namespace {

using testing::FullPolicy;
using testing::on_all_devices;
using testing::OnDevice;
using testing::suffix_of;
using testing::TrainingFixtures;

std::vector<PackedRow> reference_rows() {
  return rows_of(read_sft_data(onset::testing::data("training/data_sft.json"),
                               {.data = testing::id_options(512)})
                     .examples);
}

SftOptions options_of(const Json& hyper) {
  return {.window = {.batch = hyper.at("micro_batch").get<std::int64_t>(),
                     .micro_batches = hyper.at("micro").get<std::int64_t>()}};
}

class SftCurves : public TrainingFixtures,
                  public ::testing::WithParamInterface<OnDevice<std::string>> {
 protected:
  [[nodiscard]] static Json reference() { return read("sft_full_" + GetParam().value + ".json"); }
  [[nodiscard]] static std::filesystem::path model_of(const Json& run) {
    return onset::testing::data("training/" + run.at("model").get<std::string>());
  }
};

TEST_P(SftCurves, EqualTheReference) {
  const Json run = reference();
  const Json& hyper = run.at("hyper");
  FullPolicy full(model_of(run), run.at("wemask"), Compute::f32, false, GetParam().device);
  const Ranks alone;
  SftObjective objective(full.policy, reference_rows(), {}, options_of(hyper), alone);
  const auto steps = hyper.at("steps").get<std::int64_t>();
  std::vector<Json> indices;
  std::vector<Metrics> curve;
  TrainerCalls calls;
  const auto note_mask = [&] {
    if (!full.policy.mask()) return;
    Json layers = Json::object();
    for (const auto& [layer, dims] : full.policy.mask()->dims) {
      std::vector<std::int64_t> sorted = dims;
      std::sort(sorted.begin(), sorted.end());
      layers[std::to_string(layer)] = sorted;
    }
    indices.push_back(layers);
  };
  note_mask();
  calls.updated = [&](std::int64_t, const Metrics& metrics) {
    curve.push_back(metrics);
    note_mask();
  };
  Trainer(full.policy, objective, alone, testing::options_of(hyper, steps, ScheduleShape::cosine),
          calls)
      .run();
  testing::expect_curve(curve, run,
                        {{"loss", "loss"}, {"grad_norm", "grad_norm"}, {"learning_rate", "lr"}});
  testing::expect_checksums(testing::values_of(full.policy.trained()),
                            run.at("final_checksums_sum_sumsq"), 1e-6);
  for (std::size_t step = 0; step < curve.size() && run.contains("wemask_indices"); ++step) {
    EXPECT_EQ(indices.at(step), run.at("wemask_indices").at(step)) << "step " << step;
  }
  const testing::ReferenceTensors final(
      onset::testing::data("training/sft_full_" + GetParam().value + "_final.safetensors"));
  int compared = 0;
  for (const Parameter& parameter : full.policy.trained()) {
    if (!final.has(parameter.name)) continue;
    ++compared;
    EXPECT_TRUE(testing::close(parameter.value.cpu(), final.get(parameter.name),
                               {.atol = 2e-5, .rtol = 1e-5}))
        << parameter.name;
  }
  EXPECT_EQ(compared, 2);
}

TEST_P(SftCurves, FirstGradientsEqualTheReferenceWithAndWithoutRecomputation) {
  const Json run = reference();
  for (const bool recompute : {false, true}) {
    FullPolicy full(model_of(run), run.at("wemask"), Compute::f32, recompute, GetParam().device);
    const Ranks alone;
    SftObjective objective(full.policy, reference_rows(), {}, options_of(run.at("hyper")), alone);
    static_cast<void>(objective.accumulate(0));
    testing::expect_checksums(testing::gradients_of(full.policy.trained()), run.at("grad_step0"),
                              2e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, SftCurves,
                         ::testing::ValuesIn(on_all_devices<std::string>(
                             {"llama", "llama_wemask_frozen", "llama_wemask_recompute", "qwen3",
                              "qwen3_wemask_frozen", "qwen3_wemask_recompute"})),
                         [](const auto& instance) {
                           return instance.param.value + suffix_of(instance.param.device);
                         });

class PackedRuns : public TrainingFixtures,
                   public ::testing::WithParamInterface<OnDevice<std::string>> {};

// Rows of several documents cost what the documents cost one by one, with and without a mask.
TEST_P(PackedRuns, EqualTheReference) {
  const Json run = read("sft_packed_" + GetParam().value + ".json");
  std::vector<PackedRow> rows;
  for (const Json& row : read("data_packed.json")) {
    rows.emplace_back();
    for (const Json& document : row) {
      SftExample example{.ids = document.at("input_ids").get<TokenIds>(), .trained = {}};
      for (const Json& label : document.at("labels")) {
        example.trained.push_back(label.get<std::int64_t>() == -100 ? 0 : 1);
      }
      example.trained.front() = 0;
      rows.back().push_back(std::move(example));
    }
  }
  for (const bool masked : {false, true}) {
    const Json& expected = run.at(masked ? "wemask" : "plain");
    const Json wemask = {{"k", 8}, {"first_layer", 1}, {"mode", "frozen"}};
    FullPolicy full(onset::testing::data("training/" + run.at("model").get<std::string>()),
                    masked ? wemask : Json(nullptr), Compute::f32, false, GetParam().device);
    const Ranks alone;
    SftObjective objective(full.policy, rows, {},
                           {.window = {.batch = static_cast<std::int64_t>(rows.size())}}, alone);
    const Metrics metrics = objective.accumulate(0);
    EXPECT_NEAR(testing::value_of(metrics, "loss"), expected.at("loss_packed").get<double>(), 2e-6);
    EXPECT_NEAR(gradient_norm(full.policy.trained()), expected.at("grad_norm_packed").get<double>(),
                1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PackedRuns,
                         ::testing::ValuesIn(on_all_devices<std::string>({"llama", "qwen3"})),
                         [](const auto& instance) {
                           return instance.param.value + suffix_of(instance.param.device);
                         });

}  // namespace
}  // namespace onset
