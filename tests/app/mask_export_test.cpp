// onset mask export: what it writes and says, and calls that it refuses.

#include "app/program.h"
#include "onset/base/file.h"
#include "onset/checkpoint/safetensors.h"
#include "support/support.h"

namespace onset::testing {
namespace {

class MaskExport : public ::testing::Test {
 protected:
  void SetUp() override { mask_ = make("llama_me", {}); }
  // A mask of the model in a file of the folder.
  [[nodiscard]] std::string make(const std::string& model,
                                 const std::vector<std::string>& options) const {
    auto file = (folder_.path() / (model + ".json")).string();
    std::vector<std::string> arguments{
        "mask", "make", model_path(model), "--ids", "1,17,9", "-o", file,
        "--k",  "4",    "--from-layer",    "1"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const auto made = run_onset(arguments);
    EXPECT_EQ(made.code, 0) << made.error;
    return file;
  }
  [[nodiscard]] Outcome run(const std::string& output, const std::vector<std::string>& options,
                            const std::string& model = "llama_me") const {
    std::vector<std::string> arguments{"mask", "export", model_path(model), "--wemask", mask_,
                                       "-o",   output};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return run_onset(arguments);
  }
  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_.path() / name).string();
  }

  TemporaryFolder folder_;
  std::string mask_;
};

TEST_F(MaskExport, WritesOneFileForTheTokenThatIsNamed) {
  const auto written = run(path("seven.safetensors"), {"--token-id", "7", "--json"});
  ASSERT_EQ(written.code, 0) << written.error;
  const OrderedJson result = written.json();
  EXPECT_EQ(result.at("layout"), "heads");
  EXPECT_EQ(result.at("mask"), OrderedJson::parse(read_file(mask_)));
  ASSERT_EQ(result.at("prefixes").size(), 1U);
  const OrderedJson& prefix = result.at("prefixes").front();
  EXPECT_EQ(prefix.at("token_id"), 7);
  EXPECT_EQ(prefix.at("file"), path("seven.safetensors"));
  EXPECT_EQ(prefix.at("bytes"), std::filesystem::file_size(path("seven.safetensors")));
  const auto file = read_safetensors(path("seven.safetensors"));
  EXPECT_EQ(file.metadata.at("token_id"), "7");
  const OrderedJson config =
      OrderedJson::parse(read_file(onset::testing::data("models/llama_me/config.json")));
  const auto layers = config.at("num_hidden_layers").get<std::size_t>();
  ASSERT_EQ(file.tensors.size(), 2 * layers);
  const auto groups = config.at("num_key_value_heads").get<std::int64_t>();
  const auto dim = config.at("hidden_size").get<std::int64_t>() /
                   config.at("num_attention_heads").get<std::int64_t>();
  for (const auto& tensor : file.tensors) {
    EXPECT_EQ(tensor.shape, (std::vector<std::int64_t>{groups, 1, dim})) << tensor.name;
    EXPECT_EQ(tensor.dtype, DType::f32);
  }
}

TEST_F(MaskExport, WritesAFolderWithAFileForEachFirstTokenOfThePrompts) {
  const auto written =
      run(path("prefixes"), {"--ids", "7,1,2", "--ids", "9", "--ids", "7,30", "--json"});
  ASSERT_EQ(written.code, 0) << written.error;
  const OrderedJson result = written.json();
  std::vector<std::int64_t> tokens;
  for (const auto& prefix : result.at("prefixes")) {
    tokens.push_back(prefix.at("token_id").get<std::int64_t>());
  }
  EXPECT_EQ(tokens, (std::vector<std::int64_t>{7, 9}));
  EXPECT_TRUE(std::filesystem::exists(path("prefixes/token-7.safetensors")));
  EXPECT_TRUE(std::filesystem::exists(path("prefixes/token-9.safetensors")));
}

TEST_F(MaskExport, TheTableNamesTokenAndFileAndASlidingWindowIsSaid) {
  mask_ = make("mistral", {});
  const auto written = run(path("a.safetensors"), {"--token-id", "1"}, "mistral");
  ASSERT_EQ(written.code, 0) << written.error;
  EXPECT_NE(written.out.find("a.safetensors"), std::string::npos) << written.out;
  const OrderedJson config =
      OrderedJson::parse(read_file(onset::testing::data("models/mistral/config.json")));
  const auto window = std::to_string(config.at("sliding_window").get<std::int64_t>());
  EXPECT_NE(written.out.find("last " + window + " tokens only"), std::string::npos) << written.out;
}

TEST_F(MaskExport, WrongUseIsRefusedAndLeavesNoFile) {
  const auto file = path("a.safetensors");
  expect_refusal(run(file, {"--ids", "7", "--ids", "9"}), 2, "7, 9");
  expect_refusal(run(file, {"--ids", "7", "--token-id", "9"}), 2, "one of them");
  expect_refusal(run(file, {"--token-id", "x"}), 2, "--token-id");
  expect_refusal(run(file, {"--token-id", "100000"}), 1, "outside the model's vocabulary");
  expect_refusal(run("", {"--token-id", "1"}), 2, "-o");
  expect_refusal(run_onset({"mask", "export", model_path("llama_me"), "-o", file}), 2, "--wemask");
  mask_ = make("llama_me", {"--token", "positions", "--position", "2"});
  expect_refusal(run(file, {"--token-id", "1"}), 2, "behind the first");
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(MaskExport, WhatItReadsIsNotOverwritten) {
  const auto renamed = path("mask.safetensors");
  std::filesystem::rename(mask_, renamed);
  mask_ = renamed;
  const std::string before = read_file(renamed);
  const auto refused = run(renamed, {"--token-id", "1"});
  EXPECT_EQ(refused.code, 2) << refused.error;
  EXPECT_EQ(read_file(renamed), before);
}

TEST_F(MaskExport, AFileInPlaceOfTheFolderIsSaid) {
  std::filesystem::copy_file(mask_, path("file"));
  expect_refusal(run(path("file"), {"--token-id", "1"}), 1, "no folder");
}

}  // namespace
}  // namespace onset::testing
