// `--device` of the verbs that run a model, and of training.
#include "app/program.h"

namespace onset::testing {
namespace {

const std::string model = data("models/llama_me").string();

TEST(DeviceOption, IsRefusedBeforeAnythingIsReadWhereItIsNotKnown) {
  for (const std::vector<std::string>& verb : std::vector<std::vector<std::string>>{
           {"scan", "x"}, {"explain", "x"}, {"generate", "x", "--prompt", "a"}, {"eval", "x"}}) {
    std::vector<std::string> arguments = verb;
    arguments.insert(arguments.end(), {"--device", "gpu"});
    expect_refusal(run_onset(arguments), 2, "use cpu, cuda, or cuda:N");
  }
  const std::vector<std::string> training{"train",        "sft",        model,
                                          "--train-file", "none.jsonl", "-o",
                                          "/nowhere/x",   "--device",   "graphics card"};
  expect_refusal(run_onset(training), 2, "use cpu, cuda, or cuda:N");
  expect_refusal(run_onset({"train", "sft", model, "--use-cpu"}), 2, "use device");
}

TEST(DeviceOption, CudaWithoutAGpuIsRefused) {
  const auto outcome = run_onset({"scan", model, "--ids", "1,2,3", "--device", "cuda"});
  if (outcome.code == 0) GTEST_SKIP() << "a GPU was found";
  expect_refusal(outcome, outcome.code,
                 outcome.code == 2 ? "build with -DONSET_CUDA=ON" : "no GPU found");
}

TEST(DeviceOption, IsInTheResult) {
  const auto outcome =
      run_onset({"scan", model, "--ids", "1,2,3", "--device", "cpu", "--json", "--quiet"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_EQ(OrderedJson::parse(outcome.out)["run"]["device"], "cpu");
}

}  // namespace
}  // namespace onset::testing
