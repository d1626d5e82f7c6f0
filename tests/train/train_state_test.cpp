#include "onset/train/train_state.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "onset/base/file.h"
#include "onset/train/checkpoint_folders.h"
#include "support/support.h"

namespace onset {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using testing::TemporaryFolder;

std::vector<Parameter> two_parameters(std::int64_t width = 5, const std::string& second = "gain") {
  std::vector<Parameter> parameters{{"proj.weight", at::arange(3 * width, at::kFloat) * 0.25},
                                    {second, at::ones({width}, at::kDouble)}};
  parameters[0].value = parameters[0].value.reshape({3, width}).clone();
  for (Parameter& parameter : parameters) parameter.value.requires_grad_();
  return parameters;
}

void take_steps(AdamW& optimizer, int from, int to) {
  for (int step = from; step < to; ++step) {
    for (const Parameter& parameter : optimizer.parameters()) {
      parameter.value.mutable_grad() = at::sin(parameter.value.detach() + step);
    }
    optimizer.step(0.01);
  }
}

TrainState state_at(std::int64_t step) {
  return {.step = step,
          .identity = {{"model", {{"hidden", 64}, {"layers", 3}}}, {"learning_rate", 1e-3}},
          .progress = {{"epoch", 1}, {"seed", 18446744073709551615U}, {"loss", 0.1}},
          .best = BestCheckpoint{.step = 10, .metric = "eval_loss", .value = 2.0 / 3}};
}

fs::path save(const fs::path& output, const TrainState& state, const AdamW& optimizer,
              std::int64_t keep = 0) {
  return save_checkpoint(
      output, state, optimizer,
      [](const fs::path& folder) { write_file_atomically(folder / "model", "weights"); },
      {.keep = keep});
}

TEST(TrainState, ComesBackAsItWasSaved) {
  const TemporaryFolder output;
  AdamW optimizer(two_parameters(), {});
  const fs::path checkpoint = save(output.path(), state_at(20), optimizer);
  EXPECT_EQ(checkpoint, output.path() / "checkpoint-20");
  EXPECT_EQ(read_file(checkpoint / "model"), "weights");
  const TrainState read = read_train_state(checkpoint);
  EXPECT_EQ(read.step, 20);
  EXPECT_EQ(read.identity, state_at(20).identity);
  EXPECT_EQ(read.progress, state_at(20).progress);
  EXPECT_EQ(read.progress.at("seed").get<std::uint64_t>(), 18446744073709551615U);
  ASSERT_TRUE(read.best);
  EXPECT_EQ(read.best->step, 10);
  EXPECT_EQ(read.best->metric, "eval_loss");
  EXPECT_EQ(read.best->value, 2.0 / 3);
  check_same_run(read, state_at(20).identity, checkpoint);
}

TEST(TrainState, AnOptimizerGoesOnFromFilesBitForBit) {
  const TemporaryFolder output;
  AdamW whole(two_parameters(), {});
  take_steps(whole, 0, 6);
  AdamW first(two_parameters(), {});
  take_steps(first, 0, 3);
  const fs::path checkpoint = save(output.path(), state_at(3), first);
  AdamW second(two_parameters(), {});
  read_optimizer(checkpoint, second);
  take_steps(second, 3, 6);
  for (std::size_t i = 0; i < second.parameters().size(); ++i) {
    EXPECT_TRUE(at::equal(second.parameters()[i].value, whole.parameters()[i].value));
    EXPECT_TRUE(at::equal(second.moments()[i].second, whole.moments()[i].second));
    EXPECT_EQ(second.moments()[i].steps.item<double>(), 6);
  }
}

TEST(TrainState, KeepsTheLatestAndTheBest) {
  const TemporaryFolder output;
  AdamW optimizer(two_parameters(), {});
  for (const std::int64_t step : {10, 20, 30, 40}) {
    save(output.path(), state_at(step), optimizer, 2);
  }
  std::vector<std::int64_t> steps;
  for (const auto& found : list_checkpoints(output.path())) steps.push_back(found.step);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{10, 30, 40}));
}

TEST(TrainState, AnotherRunsSettingsAreNamed) {
  const TrainState saved = state_at(20);
  OrderedJson other = saved.identity;
  other["model"]["hidden"] = 128;
  std::string message = error_of([&] { check_same_run(saved, other, "run/checkpoint-20"); });
  EXPECT_NE(message.find("run/checkpoint-20"), std::string::npos) << message;
  EXPECT_NE(message.find("model.hidden was 64 and is 128"), std::string::npos) << message;
  other = saved.identity;
  other["packing"] = true;
  message = error_of([&] { check_same_run(saved, other, "c"); });
  EXPECT_NE(message.find("packing was not set and is true"), std::string::npos) << message;
  other = saved.identity;
  other.erase("learning_rate");
  message = error_of([&] { check_same_run(saved, other, "c"); });
  EXPECT_NE(message.find("learning_rate was 0.001 and is not set"), std::string::npos) << message;
}

TEST(TrainState, MomentsOfOtherTensorsAreRefusedAndNothingChanges) {
  const TemporaryFolder output;
  AdamW optimizer(two_parameters(), {});
  take_steps(optimizer, 0, 2);
  const fs::path checkpoint = save(output.path(), state_at(2), optimizer);

  AdamW wider(two_parameters(6), {});
  std::string message = error_of([&] { read_optimizer(checkpoint, wider); });
  EXPECT_NE(message.find("weight.proj.weight has shape [3,5] there and [3,6] here"),
            std::string::npos)
      << message;
  AdamW renamed(two_parameters(5, "bias"), {});
  message = error_of([&] { read_optimizer(checkpoint, renamed); });
  EXPECT_NE(message.find("has no weight.bias"), std::string::npos) << message;
  EXPECT_EQ(renamed.moments()[0].steps.item<double>(), 0);
  std::vector<Parameter> one = two_parameters();
  one.pop_back();
  AdamW fewer(one, {});
  message = error_of([&] { read_optimizer(checkpoint, fewer); });
  EXPECT_NE(message.find("first.gain, which this run does not train"), std::string::npos)
      << message;
}

// One byte of a file another; its size and date stay.
void change_a_byte(const fs::path& path, std::size_t at) {
  const auto date = fs::last_write_time(path);
  std::string content = read_file(path);
  content.at(at) = static_cast<char>(content.at(at) ^ 1);
  write_file_atomically(path, content);
  fs::last_write_time(path, date);
}

TEST(TrainState, AFileThatIsNotWhatWasSavedIsNamedWithTheCheckpointBefore) {
  const TemporaryFolder output;
  AdamW optimizer(two_parameters(), {});
  const fs::path before = save(output.path(), state_at(9), optimizer);
  const fs::path checkpoint = save(output.path(), state_at(10), optimizer);
  EXPECT_NO_THROW(check_checkpoint(checkpoint));
  static_cast<void>(output.write("checkpoint-10/notes.txt", "a user's own"));
  EXPECT_NO_THROW(check_checkpoint(checkpoint));
  const auto fault = [&] { return error_of([&] { check_checkpoint(checkpoint); }); };
  for (const char* name : {"model", "optimizer.safetensors"}) {
    const std::size_t last = fs::file_size(checkpoint / name) - 1;
    change_a_byte(checkpoint / name, last);
    EXPECT_NE(fault().find((checkpoint / name).string() + ": is not what was saved"),
              std::string::npos)
        << fault();
    EXPECT_TRUE(fault().ends_with("--resume-from-checkpoint " + before.string())) << fault();
    change_a_byte(checkpoint / name, last);
  }
  EXPECT_NO_THROW(check_checkpoint(checkpoint));
  fs::rename(checkpoint / "model", checkpoint / "moved");
  EXPECT_NE(fault().find("model: is missing"), std::string::npos) << fault();
  // The first has none before it.
  change_a_byte(before / "model", 0);
  const std::string first = error_of([&] { check_checkpoint(before); });
  EXPECT_NE(first.find("there is no checkpoint before it"), std::string::npos) << first;
}

TEST(TrainState, AnEditedStepIsNoticed) {
  const TemporaryFolder output;
  AdamW optimizer(two_parameters(), {});
  const fs::path checkpoint = save(output.path(), state_at(10), optimizer);
  const fs::path file = checkpoint / "trainer_state.json";
  OrderedJson json = OrderedJson::parse(read_file(file));
  ASSERT_EQ(json.at("step"), 10);
  // Written otherwise, it still says the same.
  write_file_atomically(file, json.dump());
  EXPECT_EQ(read_train_state(checkpoint).step, 10);
  json["step"] = 11;
  write_file_atomically(file, json.dump(1));
  const std::string message = error_of([&] { return read_train_state(checkpoint); });
  EXPECT_NE(message.find("trainer_state.json: is not what was saved"), std::string::npos)
      << message;
  write_file_atomically(file, json.dump().substr(0, 100));
  save(output.path(), state_at(7), optimizer);
  const std::string torn = error_of([&] { check_checkpoint(checkpoint); });
  EXPECT_NE(torn.find("trainer_state.json"), std::string::npos) << torn;
  EXPECT_NE(torn.find("--resume-from-checkpoint " + (output.path() / "checkpoint-7").string()),
            std::string::npos)
      << torn;
}

TEST(TrainState, ACheckpointThatWasSavedWithoutHashesStillServes) {
  const TemporaryFolder output;
  AdamW optimizer(two_parameters(), {});
  const fs::path checkpoint = save(output.path(), state_at(10), optimizer);
  const fs::path file = checkpoint / "trainer_state.json";
  OrderedJson json = OrderedJson::parse(read_file(file));
  json.erase("files");
  json.erase("content");
  write_file_atomically(file, json.dump(1));
  EXPECT_EQ(read_train_state(checkpoint).step, 10);
  EXPECT_NO_THROW(check_checkpoint(checkpoint));
}

TEST(TrainState, DamagedFilesAreErrorsThatNameThem) {
  const TemporaryFolder output;
  AdamW optimizer(two_parameters(), {});
  const fs::path checkpoint = save(output.path(), state_at(2), optimizer);
  const std::string moments = read_file(checkpoint / "optimizer.safetensors");
  for (const std::size_t length : {std::size_t{0}, std::size_t{5}, moments.size() - 1}) {
    write_file_atomically(checkpoint / "optimizer.safetensors", moments.substr(0, length));
    const std::string message = error_of([&] { read_optimizer(checkpoint, optimizer); });
    EXPECT_NE(message.find("optimizer.safetensors"), std::string::npos) << message;
  }
  const std::string state = read_file(checkpoint / "trainer_state.json");
  for (const std::string& text :
       {state.substr(0, state.size() / 2), std::string("{}"), std::string("[1]"),
        std::string(R"({"format":"onset-training","version":2})"),
        std::string(R"({"format":"onset-training","version":1,"step":"3"})"),
        std::string(R"({"format":"onset-training","version":1,"step":3})")}) {
    write_file_atomically(checkpoint / "trainer_state.json", text);
    const std::string message = error_of([&] { return read_train_state(checkpoint); });
    EXPECT_NE(message.find("trainer_state.json"), std::string::npos) << message;
  }
}

TEST(TrainState, OtherRowsAndOtherRanksAreSaidInWords) {
  TrainState saved = state_at(20);
  saved.identity["data"] = "0123";
  saved.identity["ranks"] = 2;
  OrderedJson other = saved.identity;
  other["data"] = "4567";
  std::string message = error_of([&] { check_same_run(saved, other, "c"); });
  EXPECT_NE(message.find("its data have changed"), std::string::npos) << message;
  EXPECT_EQ(message.find("0123"), std::string::npos) << message;
  other = saved.identity;
  other["ranks"] = 1;
  message = error_of([&] { check_same_run(saved, other, "c"); });
  EXPECT_NE(message.find("mpirun -n 2"), std::string::npos) << message;
}

TEST(TrainState, ACheckpointWithoutItsStateNamesTheOneBefore) {
  const TemporaryFolder output;
  AdamW optimizer(two_parameters(), {});
  static_cast<void>(save(output.path(), state_at(2), optimizer));
  const fs::path last = save(output.path(), state_at(4), optimizer);
  fs::remove(last / "trainer_state.json");
  const std::string message = error_of([&] { check_checkpoint(last); });
  EXPECT_NE(message.find("trainer_state.json: is missing"), std::string::npos) << message;
  EXPECT_NE(message.find("checkpoint-2"), std::string::npos) << message;
}

}  // namespace
}  // namespace onset
