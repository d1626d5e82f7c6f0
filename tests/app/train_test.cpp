// onset train: runs, what they write, how they stop and go on, alone and on several ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <thread>

#include "app/background.h"
#include "app/browser.h"
#include "app/program.h"
#include "app/train_support.h"
#include "onset/base/error.h"
#include "onset/base/file.h"
#include "support/support.h"

namespace onset {
namespace {

namespace fs = std::filesystem;
using testing::BackgroundProgram;
using testing::expect_refusal;
using testing::id_rows;
using testing::metrics_of;
using testing::model_path;
using testing::Outcome;
using testing::run_onset;
using testing::sft_arguments;
using testing::TemporaryFolder;

// The same on so many ranks; skips the test where there is no MPI.
Outcome run_on_ranks(int ranks, const std::vector<std::string>& arguments,
                     const std::string& environment = {}) {
  const TemporaryFolder folder;
  const std::string errors = (folder.path() / "errors").string();
  std::string command =
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
      "OMP_NUM_THREADS=1 " +
      environment + " " ONSET_MPIRUN " --oversubscribe -n " + std::to_string(ranks) +
      " " ONSET_PROGRAM;
  for (const std::string& argument : arguments) command += " '" + argument + "'";
  command += " > /dev/null 2> " + errors;
  const int status = std::system(command.c_str());
  return {.code = WEXITSTATUS(status), .out = {}, .error = read_file(errors)};
}

bool has_mpi() { return !std::string_view(ONSET_MPIRUN).empty(); }

TEST(TrainVerb, WritesAModelThatTheOtherVerbsOpen) {
  const TemporaryFolder folder;
  const auto data = folder.write("rows.jsonl", id_rows(8));
  const auto output = folder.path() / "run";
  const Outcome run = run_onset(sft_arguments(
      data, output,
      {"--max-steps", "3", "--per-device-train-batch-size", "4", "--logging-steps", "1"}));
  ASSERT_EQ(run.code, 0) << run.error;
  EXPECT_NE(run.out.find((output / "final").string()), std::string::npos) << run.out;
  EXPECT_NE(run.error.find("weights are trained"), std::string::npos) << run.error;
  EXPECT_NE(run.error.find("Memory, estimated"), std::string::npos) << run.error;
  EXPECT_NE(read_file(output / "report.html").find("</html>"), std::string::npos);
  const auto metrics = metrics_of(output);
  ASSERT_EQ(metrics.size(), 3U);
  EXPECT_LT(metrics.back().at("loss").get<double>(), metrics.front().at("loss").get<double>());
  const Outcome scan =
      run_onset({"scan", (output / "final").string(), "--ids", "5,9,17", "--json"});
  ASSERT_EQ(scan.code, 0) << scan.error;
  const auto layers = scan.json().at("prompts").at(0).at("layers");
  const Outcome base = run_onset({"scan", model_path("llama"), "--ids", "5,9,17", "--json"});
  EXPECT_NE(layers, base.json().at("prompts").at(0).at("layers"));
  // What it was told, and only that, starts the same run again.
  const auto again = folder.path() / "again";
  const Outcome repeated = run_onset(
      {"train", "sft", "--config", (output / "settings.toml").string(), "-o", again.string()});
  ASSERT_EQ(repeated.code, 0) << repeated.error;
  EXPECT_EQ(read_file(again / "final/model.safetensors"),
            read_file(output / "final/model.safetensors"));
}

bool has_event_file(const fs::path& output) {
  for (const auto& entry : fs::directory_iterator(output)) {
    if (entry.path().filename().string().starts_with("events.out.tfevents")) return true;
  }
  return false;
}

TEST(TrainVerb, EventFilesAreLeftOutOnDemand) {
  const TemporaryFolder folder;
  const auto data = folder.write("rows.jsonl", id_rows(4));
  const auto with = folder.path() / "with";
  ASSERT_EQ(run_onset(sft_arguments(data, with, {"--max-steps", "1"})).code, 0);
  EXPECT_TRUE(has_event_file(with));
  const auto without = folder.path() / "without";
  ASSERT_EQ(run_onset(sft_arguments(data, without, {"--max-steps", "1", "--no-tensorboard"})).code,
            0);
  EXPECT_FALSE(has_event_file(without));
}

TEST(TrainVerb, AFolderWithARunIsNotOverwritten) {
  const TemporaryFolder folder;
  const auto data = folder.write("rows.jsonl", id_rows(4));
  const auto arguments = sft_arguments(data, folder.path() / "run", {"--max-steps", "1"});
  ASSERT_EQ(run_onset(arguments).code, 0);
  expect_refusal(run_onset(arguments), 1, "holds another run");
}

TEST(TrainVerb, KilledAtRandomMomentsItEndsWithTheSameWeights) {
  const TemporaryFolder folder;
  const auto data = folder.write("rows.jsonl", id_rows(24));
  const std::vector<std::string> more{
      "--max-steps", "40", "--save-steps", "3", "--per-device-train-batch-size", "4"};
  const auto whole = folder.path() / "whole";
  ASSERT_EQ(run_onset(sft_arguments(data, whole, more)).code, 0);
  const auto broken = folder.path() / "broken";
  auto arguments = sft_arguments(data, broken, more);
  int kills = 0;
  for (const int wait : {5, 40, 11, 73, 29}) {
    BackgroundProgram program(arguments);
    program.wait_for("saved");
    std::this_thread::sleep_for(std::chrono::milliseconds(wait));
    program.signal(SIGKILL);
    if (program.wait() != 128 + SIGKILL) break;  // it had ended
    ++kills;
    if (arguments.back() != "last") {
      arguments.insert(arguments.end(), {"--resume-from-checkpoint", "last"});
    }
  }
  EXPECT_GE(kills, 1);
  if (arguments.back() != "last") {
    arguments.insert(arguments.end(), {"--resume-from-checkpoint", "last"});
  }
  const Outcome rest = run_onset(arguments);
  ASSERT_EQ(rest.code, 0) << rest.error;
  EXPECT_EQ(read_file(broken / "final/model.safetensors"),
            read_file(whole / "final/model.safetensors"));
}

TEST(TrainVerb, ASignalEndsTheStepAndSaves) {
  const TemporaryFolder folder;
  const auto data = folder.write("rows.jsonl", id_rows(24));
  const auto output = folder.path() / "run";
  BackgroundProgram program(
      sft_arguments(data, output, {"--max-steps", "100000", "--logging-steps", "1"}));
  program.wait_for("step 3/");
  program.signal(SIGINT);
  program.wait_for("stopping after this update");
  program.wait_for("saved");
  EXPECT_EQ(program.wait(), 0);
  EXPECT_FALSE(fs::exists(output / "final"));
  EXPECT_TRUE(fs::exists(output / "settings.toml"));
  // Who asks for what the run was to write is told what there is.
  const Outcome model = run_onset({"scan", (output / "final").string(), "--ids", "1,2"});
  EXPECT_EQ(model.code, 1);
  EXPECT_NE(model.error.find("its latest checkpoint is " + (output / "checkpoint-").string()),
            std::string::npos)
      << model.error;
  const Outcome adapter = run_onset({"scan", model_path("llama"), "--ids", "1,2", "--adapter",
                                     (output / "final").string() + "/"});
  EXPECT_EQ(adapter.code, 1);
  EXPECT_NE(adapter.error.find("its latest checkpoint is " + (output / "checkpoint-").string()),
            std::string::npos)
      << adapter.error;
}

TEST(TrainVerb, AStoppedRunSaysWhatIsMissingAndHowToGoOn) {
  const TemporaryFolder folder;
  const auto data = folder.write("rows.jsonl", id_rows(8));
  const auto output = folder.path() / "run";
  // On a terminal: the result is read there too.
  BackgroundProgram program(
      sft_arguments(data, output, {"--max-steps", "100000", "--logging-steps", "1"}), {},
      BackgroundProgram::Input::terminal, 300);
  program.wait_for("step 3/");
  program.signal(SIGINT);
  program.wait_for("final is not written yet");
  program.wait_for("--resume-from-checkpoint last");
  EXPECT_EQ(program.wait(), 0);
}

TEST(TrainVerb, DoesNotGoOnFromAModelThatWasDamaged) {
  const TemporaryFolder folder;
  const auto data = folder.write("rows.jsonl", id_rows(8));
  const auto output = folder.path() / "run";
  const std::vector<std::string> more{"--max-steps", "2", "--save-steps", "1"};
  ASSERT_EQ(run_onset(sft_arguments(data, output, more)).code, 0);
  const fs::path weights = output / "checkpoint-2/model.safetensors";
  std::string bytes = read_file(weights);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file_atomically(weights, bytes);
  auto resumed = sft_arguments(data, output, more);
  resumed.insert(resumed.end(), {"--resume-from-checkpoint", "last"});
  expect_refusal(run_onset(resumed), 1, weights.string() + ": is not what was saved");
  resumed.back() = (output / "checkpoint-1").string();
  const Outcome earlier = run_onset(resumed);
  EXPECT_EQ(earlier.code, 0) << earlier.error;
  EXPECT_NE(read_file(weights), bytes);  // saved again
}

TEST(TrainVerb, OtherSettingsDoNotGoOnWithARun) {
  const TemporaryFolder folder;
  const auto data = folder.write("rows.jsonl", id_rows(8));
  const auto output = folder.path() / "run";
  ASSERT_EQ(run_onset(sft_arguments(data, output, {"--max-steps", "2"})).code, 0);
  expect_refusal(
      run_onset(sft_arguments(
          data, output, {"--max-steps", "2", "--seed", "5", "--resume-from-checkpoint", "last"})),
      1, "seed was 42 and is 5");
}

TEST(TrainVerb, RanksGiveTheCurveOfOne) {
  if (!has_mpi()) GTEST_SKIP() << "there is no mpirun";
  const TemporaryFolder folder;
  const auto data = folder.write("rows.jsonl", id_rows(18));  // the last step of an epoch is uneven
  std::vector<std::vector<OrderedJson>> curves;
  for (const int ranks : {1, 2, 4}) {
    const auto output = folder.path() / std::to_string(ranks);
    const auto arguments =
        sft_arguments(data, output,
                      {"--max-steps", "5", "--logging-steps", "1", "--per-device-train-batch-size",
                       "2", "--gradient-accumulation-steps", std::to_string(4 / ranks)});
    const Outcome run = run_on_ranks(ranks, arguments);
    ASSERT_EQ(run.code, 0) << run.error;
    curves.push_back(metrics_of(output));
    ASSERT_EQ(curves.back().size(), 5U);
    for (std::size_t step = 0; step < 5; ++step) {
      for (const char* name : {"loss", "grad_norm", "mean_token_accuracy"}) {
        const auto expected = curves.front()[step].at(name).get<double>();
        EXPECT_NEAR(curves.back()[step].at(name).get<double>(), expected, 2e-5 * expected)
            << name << " of step " << step << " on " << ranks << " ranks";
      }
    }
  }
}

// A vocabulary of bytes, and texts for a small model of them.
fs::path byte_tokenizer_folder(const TemporaryFolder& folder) {
  Json vocabulary = Json::object();
  Json byte_level = {{"type", "ByteLevel"},
                     {"add_prefix_space", false},
                     {"trim_offsets", true},
                     {"use_regex", false}};
  // GPT-2's spelling of bytes: printable ones as they are, the others from U+0100 on.
  int next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable =
        (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    const int point = printable ? byte : next++;
    std::string spelled;
    if (point < 128) {
      spelled = static_cast<char>(point);
    } else {
      spelled = {static_cast<char>(0xC0 | (point >> 6)), static_cast<char>(0x80 | (point & 63))};
    }
    vocabulary[spelled] = byte;
  }
  const Json end = {{"id", 256},           {"content", "</s>"}, {"special", true},
                    {"normalized", false}, {"lstrip", false},   {"rstrip", false},
                    {"single_word", false}};
  const Json tokenizer = {
      {"version", "1.0"},
      {"added_tokens", {end}},
      {"normalizer", nullptr},
      {"pre_tokenizer", byte_level},
      {"post_processor", nullptr},
      {"decoder", byte_level},
      {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", Json::array()}}}};
  static_cast<void>(folder.write("bytes/tokenizer.json", tokenizer.dump()));
  static_cast<void>(folder.write("bytes/tokenizer_config.json", R"({"eos_token": "</s>"})"));
  return folder.path() / "bytes";
}

std::vector<std::string> pretrain_arguments(const TemporaryFolder& folder, const fs::path& output) {
  std::string texts;
  for (int i = 0; i < 40; ++i) {
    texts +=
        OrderedJson{{"text", "The cat sat on mat number " + std::to_string(i) + "."}}.dump() + "\n";
  }
  const auto data = folder.write("texts.jsonl", texts);
  return {"train",
          "pretrain",
          byte_tokenizer_folder(folder).string(),
          "--train-file",
          data.string(),
          "--hidden-size",
          "32",
          "--num-hidden-layers",
          "2",
          "--num-attention-heads",
          "2",
          "--block-size",
          "32",
          "--max-steps",
          "8",
          "--warmup-steps",
          "0",
          "--learning-rate",
          "0.01",
          "--logging-steps",
          "1",
          "--no-check-leaks",
          "--watch",
          "4",
          "-o",
          output.string()};
}

TEST(TrainVerb, PretrainsASmallModelAndWatchesIt) {
  const TemporaryFolder folder;
  const auto output = folder.path() / "run";
  const Outcome run = run_onset(pretrain_arguments(folder, output));
  ASSERT_EQ(run.code, 0) << run.error;
  const auto metrics = metrics_of(output);
  // It begins as a guess among 257 tokens.
  EXPECT_NEAR(metrics.front().at("loss").get<double>(), std::log(257.0), 0.1);
  EXPECT_LT(metrics.back().at("loss").get<double>(), 4.5);
  const auto watched = testing::read_jsonl(output / "watch.jsonl");
  ASSERT_EQ(watched.size(), 3U);  // before the first update, and behind the fourth and the eighth
  EXPECT_EQ(watched[1].at("step"), 4);
  EXPECT_EQ(watched[2].at("layers").size(), 2U);
  // The watched numbers are scan's.
  const Outcome scan = run_onset({"scan", (output / "final").string(), "--json", "--prompt",
                                  "My favorite color is Dark Blue."});
  ASSERT_EQ(scan.code, 0) << scan.error;
  EXPECT_NEAR(watched[2].at("layers").at(1).at("max_abs").get<double>(),
              scan.json().at("prompts").at(0).at("layers").at(1).at("max_abs").get<double>(), 1e-4);
}

TEST(TrainVerb, ThePageOfARunHasWholeStepsAndLayersAtItsAxes) {
  if (testing::browser_path().empty()) GTEST_SKIP() << "no Chromium here: the page is not opened";
  const TemporaryFolder folder;
  const auto output = folder.path() / "run";
  ASSERT_EQ(run_onset(pretrain_arguments(folder, output)).code, 0);
  testing::Browser browser;
  browser.open("file://" + (output / "report.html").string(), 1200, 900);
  ASSERT_TRUE(browser.wait_for("document.documentElement.dataset.ready === 'true'"));
  const auto ticks = [&](const std::string& figure, const std::string& axis) {
    const OrderedJson texts =
        browser.value("JSON.stringify(Array.from(document.querySelectorAll('#" + figure + " ." +
                      axis + "tick text'), (tick) => tick.textContent))");
    return OrderedJson::parse(texts.get<std::string>());
  };
  // Eight steps, two layers; the heat map's columns are at 0, 4 and 8.
  const OrderedJson steps = OrderedJson::parse(R"(["0", "1", "2", "3", "4", "5", "6", "7", "8"])");
  EXPECT_EQ(ticks("watch", "x"), steps);
  EXPECT_EQ(ticks("watch", "y"), OrderedJson::parse(R"(["0", "1"])"));
  EXPECT_EQ(ticks("curve-loss", "x"), steps);
  // Of the gradient norm, logarithmic or not: each label is a number in full, above the one below.
  const OrderedJson norms = ticks("curve-norm", "y");
  ASSERT_GE(norms.size(), 2U);
  for (std::size_t i = 1; i < norms.size(); ++i) {
    EXPECT_LT(std::stod(norms[i - 1].get<std::string>()), std::stod(norms[i].get<std::string>()))
        << norms;
  }
  EXPECT_TRUE(browser.errors().empty());
}

TEST(TrainVerb, LearnsFromRewardsOfItsOwnCompletions) {
  const TemporaryFolder folder;
  const auto base = folder.path() / "base";
  ASSERT_EQ(run_onset(pretrain_arguments(folder, base)).code, 0);
  const auto prompts =
      folder.write("prompts.jsonl", "{\"prompt\": \"The cat \"}\n{\"prompt\": \"On mat \"}\n");
  const auto grpo = [&](const fs::path& output, int accumulation, const std::string& reward) {
    std::vector<std::string> arguments{"train",
                                       "grpo",
                                       (base / "final").string(),
                                       "--train-file",
                                       prompts.string(),
                                       "--reward-funcs",
                                       reward,
                                       "--num-generations",
                                       "4",
                                       "--max-completion-length",
                                       "8",
                                       "--per-device-train-batch-size",
                                       "4",
                                       "--gradient-accumulation-steps",
                                       std::to_string(accumulation),
                                       "--max-steps",
                                       "4",
                                       "--logging-steps",
                                       "1",
                                       "--learning-rate",
                                       "0.003",
                                       "--no-check-leaks",
                                       "-o",
                                       output.string()};
    return arguments;
  };
  const auto output = folder.path() / "grpo";
  const Outcome run = run_onset(grpo(output, 2, "format:t"));
  ASSERT_EQ(run.code, 0) << run.error;
  const auto metrics = metrics_of(output);
  ASSERT_EQ(metrics.size(), 4U);
  for (const auto& line : metrics) {
    // One update a rollout: the policy is the one that sampled.
    EXPECT_LT(line.at("ratio_error").get<double>(), 1e-4);
    EXPECT_GE(line.at("reward").get<double>(), 0.0);
    EXPECT_LE(line.at("completions/max_length").get<double>(), 8.0);
  }
  if (!has_mpi()) return;
  // The draws do not depend on how prompts are shared.
  const auto shared = folder.path() / "shared";
  const Outcome ranks = run_on_ranks(2, grpo(shared, 1, "format:t"));
  ASSERT_EQ(ranks.code, 0) << ranks.error;
  const auto curve = metrics_of(shared);
  for (std::size_t step = 0; step < metrics.size(); ++step) {
    EXPECT_NEAR(curve[step].at("reward").get<double>(), metrics[step].at("reward").get<double>(),
                1e-9);
    EXPECT_NEAR(curve[step].at("grad_norm").get<double>(),
                metrics[step].at("grad_norm").get<double>(), 1e-3);
  }
  // A rank that fails ends all of them, with its message.
  const auto script =
      folder.write("reward.sh",
                   "if [ \"$OMPI_COMM_WORLD_RANK\" = 1 ]; then echo 'no reward today' >&2; exit 3; "
                   "fi; while read -r line; do echo 1; done\n");
  const Outcome failed =
      run_on_ranks(2, grpo(folder.path() / "failed", 1, "command:sh " + script.string()));
  EXPECT_NE(failed.code, 0);
  EXPECT_NE(failed.error.find("no reward today"), std::string::npos) << failed.error;
  // In one line too, which says what the lines of mpirun below it are.
  const std::size_t last = failed.error.rfind("onset: rank 1 of 2 has failed and ends the others");
  ASSERT_NE(last, std::string::npos) << failed.error;
  const std::string line = failed.error.substr(last, failed.error.find('\n', last) - last);
  EXPECT_NE(line.find("ended with exit code 3"), std::string::npos) << failed.error;
}

TEST(TrainVerb, OtherDataUnderTheSameNameDoNotGoOnWithARun) {
  const TemporaryFolder folder;
  const auto data = folder.write("rows.jsonl", id_rows(8));
  const auto output = folder.path() / "run";
  ASSERT_EQ(run_onset(sft_arguments(data, output, {"--max-steps", "2"})).code, 0);
  static_cast<void>(folder.write("rows.jsonl", id_rows(7) + "{\"input_ids\": [1, 2, 3]}\n"));
  const Outcome run = run_onset(
      sft_arguments(data, output, {"--max-steps", "2", "--resume-from-checkpoint", "last"}));
  EXPECT_EQ(run.code, 1);
  EXPECT_NE(run.error.find("the run cannot go on from here: its data have changed"),
            std::string::npos)
      << run.error;
}

TEST(TrainVerb, RanksThatReadOtherDataEndTogether) {
  if (!has_mpi()) GTEST_SKIP() << "there is no mpirun";
  const TemporaryFolder folder;
  const auto data = folder.write("rows.jsonl", id_rows(8));
  static_cast<void>(folder.write("rows1.jsonl", id_rows(5)));
  // Rank 1 reads another file, as from another machine's disk.
  const auto output = folder.path() / "run";
  const auto script = folder.write(
      "rank.sh", "file=" + data.string() +
                     "\n[ \"$OMPI_COMM_WORLD_RANK\" = 1 ] && file=" + folder.path().string() +
                     "/rows1.jsonl\nexec " ONSET_PROGRAM " train sft " + model_path("llama") +
                     " --no-check-leaks --max-steps 2 --train-file $file -o " + output.string() +
                     "\n");
  const std::string errors = (folder.path() / "errors").string();
  const int status = std::system(
      ("OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1 " ONSET_MPIRUN
       " --oversubscribe -n 2 sh " +
       script.string() + " > /dev/null 2> " + errors)
          .c_str());
  EXPECT_NE(WEXITSTATUS(status), 0);
  EXPECT_NE(read_file(errors).find("rank 1 has read other data than rank 0"), std::string::npos)
      << read_file(errors);
  EXPECT_FALSE(fs::exists(output));
}

TEST(TrainVerb, ANewModelThatCannotFitIsRefusedBeforeItIsWritten) {
  const TemporaryFolder folder;
  const auto output = folder.path() / "run";
  std::vector<std::string> arguments = pretrain_arguments(folder, output);
  const auto layers = std::find(arguments.begin(), arguments.end(), "--num-hidden-layers");
  *std::next(layers) = "1000000000";
  const Outcome run = run_onset(arguments);
  EXPECT_EQ(run.code, 1) << run.error;
  EXPECT_NE(run.error.find("make hidden_size or num_hidden_layers smaller"), std::string::npos)
      << run.error;
  EXPECT_FALSE(fs::exists(output));
}

TEST(TrainVerb, ASecondSignalEndsAtOnce) {
  const TemporaryFolder folder;
  // An update of many micro-batches: the second signal finds it under way.
  const auto data = folder.write("rows.jsonl", id_rows(2000));
  const auto output = folder.path() / "run";
  BackgroundProgram program(
      sft_arguments(data, output,
                    {"--max-steps", "100", "--logging-steps", "1", "--per-device-train-batch-size",
                     "1", "--gradient-accumulation-steps", "2000"}));
  program.wait_for("step 1/");
  program.signal(SIGINT);
  program.wait_for("a second signal ends at once");
  program.signal(SIGINT);
  EXPECT_EQ(program.wait(), 1);
  EXPECT_FALSE(fs::exists(output / "checkpoint-2"));
}

TEST(TrainVerb, WhatWasTrainedUnderAMaskIsSaidToBe) {
  const TemporaryFolder folder;
  const auto data = folder.write("rows.jsonl", id_rows(4));
  const auto mask = folder.path() / "mask.json";
  ASSERT_EQ(run_onset({"mask", "make", model_path("llama_me"), "-o", mask.string(), "--ids",
                       "1,5,9", "--from-layer", "1"})
                .code,
            0);
  std::vector<std::string> arguments = sft_arguments(
      data, folder.path() / "run", {"--max-steps", "1", "--use-peft", "--wemask", mask.string()});
  arguments[2] = model_path("llama_me");
  const Outcome trained = run_onset(arguments);
  ASSERT_EQ(trained.code, 0) << trained.error;
  const std::string adapter = (folder.path() / "run/final").string();
  const std::vector<std::string> generate{
      "generate", model_path("llama_me"), "--adapter", adapter, "--ids",
      "1,5,9",    "--max-tokens",         "1"};
  const Outcome plain = run_onset(generate);
  EXPECT_NE(plain.error.find(adapter + "/wemask.json"), std::string::npos) << plain.error;
  std::vector<std::string> masked = generate;
  masked.insert(masked.end(), {"--wemask", adapter + "/wemask.json"});
  EXPECT_EQ(run_onset(masked).error.find("used without it"), std::string::npos);
}

}  // namespace
}  // namespace onset
