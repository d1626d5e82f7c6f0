// Wrong use, failures, help, and standard output that cannot take the result.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/program.h"
#include "onset/base/file.h"

namespace onset::testing {
namespace {

TEST(CommandLine, HelpAndVersionAreResults) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--help"},
                                             {"-h"},
                                             {"help"},
                                             {"help", "scan"},
                                             {"scan", "--help"},
                                             {"inspect", "-h"},
                                             {"tokenize", "--help"}}) {
    const auto outcome = run_onset(arguments);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.error, "");
    EXPECT_TRUE(outcome.out.starts_with("usage: onset ")) << outcome.out;
    EXPECT_NE(outcome.out.find("Examples:"), std::string::npos);
    EXPECT_LE(widest_line(outcome.out), 80U) << outcome.out;
  }
  const auto version = run_onset({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_TRUE(version.out.starts_with("onset 0.")) << version.out;
}

TEST(CommandLine, VerbsThatDoNotExistNameTheNearest) {
  expect_refusal(run_onset({}), 2, "a verb is missing");
  expect_refusal(run_onset({"scna", "x"}), 2, "did you mean scan?");
  expect_refusal(run_onset({"zzzzzzzz"}), 2, "see: onset --help");
  expect_refusal(run_onset({"--json", "scan"}), 2, "the verb comes first");
}

TEST(CommandLine, OptionsThatDoNotExistNameTheNearest) {
  expect_refusal(run_onset({"scan", "x", "--min-rato", "3"}), 2, "did you mean --min-ratio?");
  expect_refusal(run_onset({"scan", "x", "--promt=a"}), 2, "did you mean --prompt?");
  expect_refusal(run_onset({"inspect", "x", "--verfy"}), 2, "did you mean --verify?");
  expect_refusal(run_onset({"tokenize", "x", "--zzzzzz"}), 2, "see: onset tokenize --help");
}

TEST(CommandLine, MissingAndSurplusArgumentsAreWrongUse) {
  expect_refusal(run_onset({"scan"}), 2, "needs a model");
  expect_refusal(run_onset({"inspect"}), 2, "needs a model");
  expect_refusal(run_onset({"tokenize"}), 2, "needs a model");
  expect_refusal(run_onset({"inspect", "a", "b"}), 2, "takes one model");
  expect_refusal(run_onset({"tokenize", "a", "b"}), 2, "--decode");
  expect_refusal(run_onset({"scan", "x", "--top"}), 2, "--top");
  expect_refusal(run_onset({"scan", "x", "--json", "--csv"}), 2, "exclude each other");
}

TEST(CommandLine, WrongValuesNameTheOption) {
  expect_refusal(run_onset({"scan", "x", "--top", "3", "--top", "4"}), 2, "--top is given twice");
  expect_refusal(run_onset({"inspect", "x", "-o", "a", "--output", "b"}), 2,
                 "--output is given twice");
  expect_refusal(run_onset({"scan", "x", "--ids"}), 2, "--ids needs a value");
  expect_refusal(run_onset({"scan", "x", "-o"}), 2, "--output needs a value");
  expect_refusal(run_onset({"scan", "x", "--json=5"}), 2, "--json takes no value");
  for (const std::string ids : {"1,,2", ",1", "1,", "1 , , 2", ",", "[1,]"}) {
    expect_refusal(run_onset({"scan", "x", "--ids", ids}), 2, "--ids: a token id is missing");
  }
  expect_refusal(run_onset({"scan", "x", "--ids", "1", "--ids", "2,x"}), 2, "--ids 2: \"x\"");
  expect_refusal(run_onset({"scan", "x", "--ids", "1", "--chat"}), 2, "--chat needs a text");
  expect_refusal(run_onset({"scan", "x", "--text", "a"}), 2, "did you mean --prompt?");
  expect_refusal(run_onset({"capture", "x", "--text", "a"}), 2, "did you mean --prompt?");
  expect_refusal(run_onset({"tokenize", "x", "--prompt", "a"}), 2, "did you mean --text?");
}

TEST(CommandLine, ShortOptionsTakeTheirValueInAllForms) {
  const TemporaryFolder folder;
  const auto file = (folder.path() / "a").string();
  for (const std::vector<std::string>& form :
       std::vector<std::vector<std::string>>{{"-o", file}, {"-o=" + file}, {"-o" + file}}) {
    std::vector<std::string> arguments{"inspect", model_path("llama")};
    arguments.insert(arguments.end(), form.begin(), form.end());
    EXPECT_EQ(run_onset(arguments).code, 0);
    EXPECT_TRUE(std::filesystem::remove(file)) << form.front();
  }
}

TEST(CommandLine, NumbersAreStrict) {
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"--min-abs", "nan"},    {"--min-abs", "-1"},    {"--min-abs", "-0"},
      {"--min-abs", "inf"},    {"--min-abs", "1e999"}, {"--min-abs", "5x"},
      {"--min-abs", ""},       {"--min-ratio", "1,5"}, {"--min-ratio", " 5"},
      {"--top", "-1"},         {"--top", "1.5"},       {"--top", "99999999999999999999"},
      {"--threads", "100000"}, {"--threads", "two"},   {"--seed", "-3"},
      {"--rule", "absolut"},   {"--bos", "maybe"},     {"--compute", "f8"},
  };
  for (const auto& [option, value] : wrong) {
    expect_refusal(run_onset({"scan", "x", option, value}), 2, option);
  }
  // An empty value after "=" stays empty and does not take the next argument.
  expect_refusal(run_onset({"scan", "--min-abs=", "x"}), 2, "\"\" is not a number");
}

TEST(CommandLine, Float16IsRefusedWithTheReason) {
  for (const std::string name : {"f16", "float16", "half"}) {
    const auto outcome = run_onset({"scan", "x", "--compute", name});
    expect_refusal(outcome, 2, "bf16");
    EXPECT_NE(outcome.error.find("overflow"), std::string::npos);
  }
}

TEST(CommandLine, ModelsThatCannotBeReadFail) {
  const TemporaryFolder folder;
  for (const std::string verb : {"scan", "inspect", "tokenize"}) {
    std::vector<std::string> arguments{verb, "/nowhere/at/all"};
    expect_refusal(run_onset(arguments), 1, "/nowhere/at/all");
    arguments[1] = folder.path().string();
    expect_refusal(run_onset(arguments), 1, folder.path().string());
    arguments[1] = folder.write("text.gguf", "no model").string();
    expect_refusal(run_onset(arguments), 1, "text.gguf");
  }
}

TEST(CommandLine, StandardOutputThatFailsIsAFailure) {
  const std::vector<std::vector<std::string>> calls{
      {"--help"},
      {"scan", "--help"},
      {"inspect", model_path("llama")},
      {"scan", model_path("llama_me"), "--ids", "1,2,3"},
      {"tokenize", unpacked("tokenizers/qwen3").string(), "--text", "a"}};
  for (const auto& arguments : calls) {
    const auto full = run_onset(arguments, {.output = "/dev/full"});
    expect_refusal(full, 1, "standard output");
    const auto left = run_onset(arguments, {.reader_left = true});
    expect_refusal(left, 1, "its reader left");
    const auto closed = run_onset(arguments, {.output_closed = true});
    expect_refusal(closed, 1, "standard output is closed");
  }
}

TEST(CommandLine, OutputFilesAppearWholeOrNotAtAll) {
  const TemporaryFolder folder;
  const auto file = (folder.path() / "result.json").string();
  const auto outcome = run_onset({"inspect", model_path("llama"), "--json", "-o", file});
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(OrderedJson::parse(read_file(file)).contains("model"));

  const auto missing = (folder.path() / "missing" / "result.json").string();
  expect_refusal(run_onset({"inspect", model_path("llama"), "-o", missing}), 1, missing);
  expect_refusal(run_onset({"inspect", model_path("llama"), "-o", folder.path().string()}), 1,
                 "is a folder");
  expect_refusal(run_onset({"inspect", "/nowhere", "-o", (folder.path() / "b").string()}), 1,
                 "/nowhere");
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    ++files;
  }
  EXPECT_EQ(files, 1U) << "only the result that was completed";
}

TEST(CommandLine, PipesAreWrittenToAndNotReplaced) {
  const TemporaryFolder folder;
  const auto pipe = (folder.path() / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  // Open at both ends, so that neither side waits for the other.
  const int reader = ::open(pipe.c_str(), O_RDWR | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  const auto outcome = run_onset({"inspect", model_path("llama"), "--json", "-o", pipe});
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  std::string text(1U << 16U, '\0');
  const auto size = ::read(reader, text.data(), text.size());
  ::close(reader);
  ASSERT_GT(size, 0);
  text.resize(static_cast<std::size_t>(size));
  EXPECT_TRUE(OrderedJson::parse(text).contains("model"));
  expect_refusal(run_onset({"capture", model_path("llama"), "--ids", "1", "-o", pipe}), 2,
                 "is no file");
}

// A copy of a fixture that a test may lose.
std::filesystem::path copy_model(const TemporaryFolder& folder) {
  auto copy = folder.path() / "model";
  std::filesystem::create_directory(copy);
  for (const auto* name : {"config.json", "model.safetensors", "generation_config.json"}) {
    std::filesystem::copy_file(model_path(std::string("llama/") + name), copy / name);
  }
  return copy;
}

TEST(CommandLine, MessagesCannotControlTheTerminal) {
  const auto outcome =
      run_onset({"scan", std::string("/nowhere/\x1b]0;title\a\n\xFFumlaut \xC3\xA4\xE2\x80\x8B")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.error.find("\\u{1B}]0;title\\u{7}\\n\\xFFumlaut \xC3\xA4\\u{200B}"),
            std::string::npos)
      << outcome.error;
  EXPECT_EQ(outcome.error.find('\x1b'), std::string::npos);
  const auto long_name =
      run_onset({"scan", "x", "--sites=" + std::string(100000, 'a'), "--prompt", ""});
  EXPECT_LT(long_name.error.size(), 3000U);
  const TemporaryFolder folder;
  static_cast<void>(folder.write("config.json", R"({"model_type": "\u001b[31mred\nnet"})"));
  std::filesystem::copy_file(model_path("llama/model.safetensors"),
                             folder.path() / "model.safetensors");
  const auto listed = run_onset({"inspect", folder.path().string()});
  EXPECT_EQ(listed.code, 0) << listed.error;
  EXPECT_NE(listed.out.find("\\u{1B}[31mred\\nnet"), std::string::npos) << listed.out;
  EXPECT_EQ(listed.out.find('\x1b'), std::string::npos);
}

TEST(CommandLine, OutputsDoNotReplaceInputs) {
  const TemporaryFolder folder;
  const auto model = copy_model(folder);
  const auto rows = folder.write("rows.jsonl", "{\"ids\":[1,2]}\n").string();
  const auto gguf = folder.path() / "a-00001-of-00002.gguf";
  const auto second = folder.path() / "a-00002-of-00002.gguf";
  std::filesystem::copy_file(model_path("llama/f32.gguf"), gguf);
  std::filesystem::copy_file(gguf, second);
  const auto hard_link = folder.path() / "hard";
  const auto soft_link = folder.path() / "soft";
  std::filesystem::create_hard_link(model / "model.safetensors", hard_link);
  std::filesystem::create_symlink(model / "config.json", soft_link);
  struct Case {
    std::string model;
    std::string output;
  };
  const std::vector<Case> cases{
      {model, model / "model.safetensors"},
      {model, model / "config.json"},
      {model, model / "." / "generation_config.json"},
      {model, hard_link},
      {model, soft_link},
      {gguf, gguf},
      {gguf, second},
  };
  for (const auto& [read, written] : cases) {
    const auto before = read_file(written);
    expect_refusal(run_onset({"scan", read, "--ids", "1", "-o", written}), 2, "would replace");
    expect_refusal(run_onset({"scan", read, "--ids", "1", "--report", written}), 2, "--report");
    expect_refusal(run_onset({"inspect", read, "-o", written}), 2, "would replace");
    expect_refusal(run_onset({"tokenize", read, "--text", "a", "-o", written}), 2, "would replace");
    expect_refusal(run_onset({"capture", read, "--ids", "1", "-o", written}), 2, "would replace");
    EXPECT_EQ(read_file(written), before);
  }
  for (const std::string verb : {"scan", "capture", "tokenize"}) {
    expect_refusal(run_onset({verb, model, "--jsonl", rows, "-o", rows}), 2, "is read");
  }
  expect_refusal(run_onset({"tokenize", model, "-o", rows}, {.input_path = rows}), 2,
                 "standard input");
  EXPECT_EQ(read_file(rows), "{\"ids\":[1,2]}\n");
  // A new file in the model's folder is no input.
  EXPECT_EQ(run_onset({"inspect", model, "-o", model / "new.txt"}).code, 0);
}

TEST(CommandLine, EmptyNamesAreWrongUse) {
  expect_refusal(run_onset({"scan", ""}), 2, "empty");
  expect_refusal(run_onset({"inspect", ""}), 2, "empty");
  expect_refusal(run_onset({"tokenize", ""}), 2, "empty");
  expect_refusal(run_onset({"inspect", model_path("llama"), "-o", ""}), 2, "--output");
}

TEST(CommandLine, NothingIsColouredOrAnimatedOffATerminal) {
  const auto outcome = run_onset({"scan", model_path("llama_me"), "--ids", "1,2,3"});
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_EQ(outcome.out.find('\x1b'), std::string::npos);
  EXPECT_EQ(outcome.error, "");
}

}  // namespace
}  // namespace onset::testing
