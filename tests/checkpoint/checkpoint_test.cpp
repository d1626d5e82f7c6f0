// Checkpoints of both formats through the one interface, on the fixtures and on split models.
#include "onset/checkpoint/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "checkpoint/files.h"
#include "support/support.h"

namespace onset {
namespace {

namespace fs = std::filesystem;
using testing::data;
using testing::error_of;
using testing::GgufBuilder;
using testing::TemporaryFolder;

std::vector<float> values(const Checkpoint& model, const std::string& name) {
  const TensorInfo& tensor = model.require(name);
  std::vector<float> result(static_cast<std::size_t>(tensor.elements()));
  to_float32(tensor.dtype, model.data(tensor), result);
  return result;
}

// The same model in both formats: an embedding and a square projection that llama.cpp's converter
// leaves as it is.
TEST(Checkpoint, BothFormatsGiveTheSameWeights) {
  const Checkpoint folder = Checkpoint::open(data("models/llama"));
  const Checkpoint gguf = Checkpoint::open(data("models/llama/f32.gguf"));
  EXPECT_EQ(folder.format(), CheckpointFormat::safetensors);
  EXPECT_EQ(gguf.format(), CheckpointFormat::gguf);
  for (const auto& [theirs, ours] : std::vector<std::pair<std::string, std::string>>{
           {"token_embd.weight", "model.embed_tokens.weight"},
           {"blk.0.ffn_down.weight", "model.layers.0.mlp.down_proj.weight"},
           {"blk.1.attn_norm.weight", "model.layers.1.input_layernorm.weight"}}) {
    EXPECT_EQ(gguf.require(theirs).shape, folder.require(ours).shape) << ours;
    EXPECT_EQ(values(gguf, theirs), values(folder, ours)) << ours;
  }
  EXPECT_EQ(gguf.config().at("general.architecture"), "llama");
  EXPECT_EQ(gguf.config().at("llama.block_count"), folder.config().at("num_hidden_layers"));
}

TEST(Checkpoint, TensorsAreSortedAndFoundByName) {
  const Checkpoint model = Checkpoint::open(data("models/qwen3/f32.gguf"));
  for (std::size_t i = 1; i < model.tensors().size(); ++i) {
    EXPECT_LT(model.tensors()[i - 1].name, model.tensors()[i].name);
  }
  for (const TensorInfo& tensor : model.tensors()) EXPECT_EQ(model.find(tensor.name), &tensor);
  EXPECT_EQ(model.find("absent"), nullptr);
  EXPECT_EQ(model.find(""), nullptr);
}

TEST(Checkpoint, AMissingTensorIsAnErrorWithTheNearestNames) {
  const auto path = data("models/llama");
  const Checkpoint model = Checkpoint::open(path);
  EXPECT_EQ(
      error_of([&] { (void)model.require("model.layers.1.mlp.gate.weight"); }),
      path.string() + ": has no tensor \"model.layers.1.mlp.gate.weight\" (it has " +
          std::to_string(model.tensors().size()) +
          " tensors)\ndid you mean \"model.layers.1.mlp.gate_proj.weight\", "
          "\"model.layers.0.mlp.gate_proj.weight\", \"model.layers.2.mlp.gate_proj.weight\"?");
}

TEST(Checkpoint, ReadingAheadAndDroppingKeepTheData) {
  const Checkpoint model = Checkpoint::open(data("models/llama"));
  const TensorInfo& tensor = model.require("model.embed_tokens.weight");
  const auto before = values(model, tensor.name);
  model.will_need(tensor);
  model.drop(tensor);
  EXPECT_EQ(values(model, tensor.name), before);
}

TEST(Checkpoint, DataOutlivesTheFileName) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "x.gguf";
  fs::copy_file(data("models/llama/f32.gguf"), path);
  const Checkpoint model = Checkpoint::open(path);
  fs::remove(path);
  EXPECT_FALSE(values(model, "token_embd.weight").empty());
}

TEST(Checkpoint, LongArraysStayOutOfTheConfig) {
  const TemporaryFolder folder;
  std::string few;
  std::string many;
  for (int i = 0; i < 1025; ++i) testing::append<std::int32_t>(many, i);
  for (int i = 0; i < 1024; ++i) testing::append<std::int32_t>(few, i);
  const auto path = folder.write(
      "x.gguf", GgufBuilder().array("many", 5, 1025, many).array("few", 5, 1024, few).build(0));
  const Checkpoint model = Checkpoint::open(path);
  EXPECT_FALSE(model.config().contains("many"));
  EXPECT_EQ(model.config().at("few").size(), 1024U);
}

TEST(Checkpoint, SaysWhatAPathIs) {
  const TemporaryFolder folder;
  const auto says = [&](const fs::path& path) {
    const std::string message = error_of([&] { (void)Checkpoint::open(path); });
    EXPECT_TRUE(message.starts_with(path.string() + ": ")) << message;
    return message.substr(std::min(message.size(), path.string().size() + 2));
  };
  const std::string give = "give a folder as Hugging Face writes it, or a .gguf file";
  EXPECT_EQ(says(folder.path() / "absent"),
            "does not exist\ngive a folder with config.json and safetensors, or a .gguf file");
  EXPECT_EQ(says(""),
            "does not exist\ngive a folder with config.json and safetensors, or a .gguf file");
  EXPECT_EQ(
      says(folder.write("notes.txt", "hello")),
      "is not a model: neither a GGUF file (it does not begin with \"GGUF\") nor a folder with "
      "config.json\n" +
          give);
  EXPECT_EQ(
      says(folder.write("empty", "")),
      "is not a model: neither a GGUF file (it does not begin with \"GGUF\") nor a folder with "
      "config.json\n" +
          give);
  EXPECT_EQ(says(folder.write("empty.gguf", "")), "is not a GGUF file: it is empty");
  EXPECT_EQ(says(folder.write("seven.gguf", "1234567")),
            "is not a GGUF file: it does not begin with \"GGUF\"");
  EXPECT_EQ(says(folder.write("w.safetensors", testing::small_safetensors({"a"}))),
            "is one weight file, a model is its folder with config.json\n"
            "give the folder that holds this file");
  EXPECT_EQ(says(folder.write("config.json", "{}")),
            "is a JSON file, not a model\ngive the folder that holds it");
  fs::create_directory(folder.path() / "x.gguf");
  EXPECT_EQ(says(folder.path() / "x.gguf"), "is no model folder: config.json is missing\n" + give);
  EXPECT_EQ(says("/dev/null"), "is neither a folder nor a regular file");
  ASSERT_EQ(::mkfifo((folder.path() / "pipe.gguf").c_str(), 0600), 0);
  EXPECT_EQ(says(folder.path() / "pipe.gguf"), "is neither a folder nor a regular file");
}

// Root reads everything, so as root this is tried as another user.
TEST(Checkpoint, SaysThatAFileCannotBeRead) {
  constexpr uid_t nobody = 65534;
  const TemporaryFolder folder;
  fs::permissions(folder.path(), fs::perms::all);
  const auto path = folder.write("x.gguf", GgufBuilder().build(0));
  fs::permissions(path, fs::perms::none);
  const bool root = ::geteuid() == 0;
  if (root) {
    ASSERT_EQ(::seteuid(nobody), 0);
  }
  const std::string message = error_of([&] { (void)Checkpoint::open(path); });
  if (root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  EXPECT_EQ(message, path.string() + ": cannot open: Permission denied");
}

TEST(Checkpoint, AGgufFileNeedsNoExtension) {
  const TemporaryFolder folder;
  const auto path = folder.write("blob", GgufBuilder().tensor("a", 0, {2}, 0).build(8));
  EXPECT_EQ(Checkpoint::open(path).tensors().size(), 1U);
}

class SplitGguf : public ::testing::Test {
 protected:
  static GgufBuilder part(std::uint16_t index, std::uint16_t count, std::string_view tensor) {
    GgufBuilder builder;
    builder.number("split.no", 2, index).number("split.count", 2, count);
    builder.number<std::int32_t>("split.tensors.count", 5, count).tensor(tensor, 0, {2}, 0);
    return builder;
  }
  void SetUp() override {
    (void)folder_.write(name(1), part(0, 3, "c").text("general.name", "split").build(8));
    (void)folder_.write(name(2), part(1, 3, "a").build(8));
    (void)folder_.write(name(3), part(2, 3, "b").build(8));
  }
  static std::string name(int number) {
    return "m-0000" + std::to_string(number) + "-of-00003.gguf";
  }
  [[nodiscard]] fs::path path(int number) const { return folder_.path() / name(number); }
  [[nodiscard]] std::string refusal(int number) const {
    std::string message = error_of([&] { (void)Checkpoint::open(path(number)); });
    const std::string prefix = folder_.path().string();
    if (message.starts_with(prefix)) message = message.substr(prefix.size() + 1);
    return message;
  }

  TemporaryFolder folder_;
};

TEST_F(SplitGguf, OpensFromAnyPart) {
  for (int number = 1; number <= 3; ++number) {
    const Checkpoint model = Checkpoint::open(path(number));
    ASSERT_EQ(model.tensors().size(), 3U);
    EXPECT_EQ(model.files().at(model.require("a").file).path(), path(2));
    EXPECT_EQ(model.config().at("general.name"), "split");
    EXPECT_EQ(model.files().front().path(), path(1));
  }
}

TEST_F(SplitGguf, NamesAMissingPart) {
  fs::remove(path(2));
  EXPECT_EQ(refusal(3), name(2) +
                            ": is missing: it is part 2 of 3 of the model\n"
                            "copy or download the missing part into the same folder");
}

TEST_F(SplitGguf, RefusesPartsThatDoNotBelongTogether) {
  (void)folder_.write(name(2), part(0, 3, "a").build(8));
  EXPECT_EQ(refusal(1), name(2) + ": expected part 2 of 3, says it is part 0 (from 0) of 3");
  (void)folder_.write(name(2), part(1, 4, "a").build(8));
  EXPECT_EQ(refusal(1), name(2) + ": expected part 2 of 3, says it is part 1 (from 0) of 4");
  (void)folder_.write(name(2), part(1, 3, "c").build(8));
  EXPECT_EQ(refusal(1), name(2) + ": tensor \"c\" is in another part of the model too");
  (void)folder_.write(name(2), part(1, 3, "a").tensor("d", 0, {2}, 32).build(64));
  EXPECT_EQ(refusal(1), name(1) + ": the parts should hold 3 tensors, found 4");
}

TEST_F(SplitGguf, RefusesAPartUnderAnotherName) {
  fs::rename(path(1), folder_.path() / "renamed.gguf");
  EXPECT_EQ(error_of([&] { (void)Checkpoint::open(folder_.path() / "renamed.gguf"); }),
            (folder_.path() / "renamed.gguf").string() +
                ": is part 1 of 3 of a split model: expected a name that ends in "
                "-00001-of-00003.gguf\ngive the parts the names they were made with");
}

}  // namespace
}  // namespace onset
