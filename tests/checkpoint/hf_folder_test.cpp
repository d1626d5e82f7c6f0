// Folders in Hugging Face layout: which files are read, and what is said of those that are wrong.
#include <gtest/gtest.h>

#include <filesystem>

#include "checkpoint/files.h"
#include "onset/checkpoint/checkpoint.h"
#include "support/support.h"

namespace onset {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using testing::small_safetensors;
using testing::TemporaryFolder;

constexpr const char* first_shard = "model-00001-of-00002.safetensors";
constexpr const char* second_shard = "model-00002-of-00002.safetensors";

class HfFolder : public ::testing::Test {
 protected:
  void write(std::string_view name, std::string_view content) const {
    (void)folder_.write(name, content);
  }
  // config.json, an index of a, b, c and two shards.
  void write_shards() const {
    write("config.json", R"({"model_type":"llama"})");
    write_index(R"({"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors",)"
                R"("c":"model-00002-of-00002.safetensors"})");
    write(first_shard, small_safetensors({"a"}));
    write(second_shard, small_safetensors({"c", "b"}));
  }
  void write_index(std::string_view weight_map) const {
    write("model.safetensors.index.json",
          R"({"metadata":{"total_size":24},"weight_map":)" + std::string(weight_map) + "}");
  }
  [[nodiscard]] Checkpoint open() const { return Checkpoint::open(path()); }
  // The message without the folder's path.
  [[nodiscard]] std::string refusal() const {
    std::string message = error_of([&] { (void)open(); });
    const std::string prefix = path().string();
    for (auto at = message.find(prefix); at != std::string::npos; at = message.find(prefix)) {
      message.replace(at, prefix.size(), "DIR");
    }
    return message;
  }
  [[nodiscard]] const fs::path& path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

TEST_F(HfFolder, ReadsOneFileAndBothConfigs) {
  write("config.json", R"({"model_type":"llama"})");
  write("generation_config.json", R"({"eos_token_id":[1,2]})");
  write("model.safetensors", small_safetensors({"b", "a"}));
  const Checkpoint model = open();
  EXPECT_EQ(model.format(), CheckpointFormat::safetensors);
  EXPECT_EQ(model.path(), path());
  EXPECT_EQ(model.config(), Json({{"model_type", "llama"}}));
  EXPECT_EQ(model.generation_config().at("eos_token_id"), Json({1, 2}));
  ASSERT_EQ(model.tensors().size(), 2U);
  EXPECT_EQ(model.tensors()[0].name, "a");
  EXPECT_EQ(model.data(model.tensors()[0]).size(), 8U);
}

TEST_F(HfFolder, ReadsShardsByTheirIndex) {
  write_shards();
  const Checkpoint model = open();
  EXPECT_EQ(model.generation_config(), Json::object());
  ASSERT_EQ(model.tensors().size(), 3U);
  ASSERT_EQ(model.files().size(), 2U);
  EXPECT_EQ(model.files()[model.require("a").file].path(), path() / first_shard);
  EXPECT_EQ(model.files()[model.require("b").file].path(), path() / second_shard);
}

TEST_F(HfFolder, TakesTheSingleFileWhenAnIndexIsThereToo) {
  write_shards();
  write("model.safetensors", small_safetensors({"x"}));
  EXPECT_EQ(open().tensors().size(), 1U);
}

TEST_F(HfFolder, FollowsLinksOfFilesAndOfTheFolder) {
  const TemporaryFolder blobs;
  write_shards();
  fs::rename(path() / first_shard, blobs.path() / "0123abcd");
  fs::create_symlink(blobs.path() / "0123abcd", path() / first_shard);
  fs::create_directory_symlink(path(), blobs.path() / "link");
  EXPECT_EQ(Checkpoint::open(blobs.path() / "link").tensors().size(), 3U);
}

TEST_F(HfFolder, NamesAMissingShard) {
  write_shards();
  fs::remove(path() / second_shard);
  EXPECT_EQ(
      refusal(),
      "DIR/model-00002-of-00002.safetensors: is missing: model.safetensors.index.json places 2 "
      "tensors there, such as \"b\"\ncopy or download the missing shard");
  fs::create_symlink(path() / "nowhere", path() / second_shard);
  EXPECT_TRUE(refusal().starts_with("DIR/model-00002-of-00002.safetensors: is missing: "));
}

TEST_F(HfFolder, NamesAnExtraShard) {
  write_shards();
  write("model-00003-of-00003.safetensors", small_safetensors({"d"}));
  EXPECT_EQ(
      refusal(),
      "DIR/model-00003-of-00003.safetensors: is a shard that model.safetensors.index.json does "
      "not name (it names 2)\n"
      "remove the file, or bring the index that belongs to these shards");
}

TEST_F(HfFolder, LeavesOtherFilesAlone) {
  write_shards();
  write("adapter.safetensors", "not a checkpoint at all");
  EXPECT_EQ(open().tensors().size(), 3U);
}

TEST_F(HfFolder, RefusesAShardThatDoesNotHoldItsTensors) {
  write_shards();
  write(second_shard, small_safetensors({"b"}));
  EXPECT_EQ(refusal(),
            "DIR/model-00002-of-00002.safetensors: tensor \"c\" is missing: "
            "model.safetensors.index.json expects 2 tensors in this file, found 1\n"
            "index and shards do not belong together; copy or download both again");
}

TEST_F(HfFolder, RefusesAShardWithTensorsThatAreNotPlacedThere) {
  write_shards();
  write(second_shard, small_safetensors({"b", "c", "a"}));
  EXPECT_EQ(refusal(),
            "DIR/model-00002-of-00002.safetensors: holds tensor \"a\", which "
            "model.safetensors.index.json does not place there");
}

TEST_F(HfFolder, RefusesNamesOfShardsThatLeaveTheFolder) {
  write_shards();
  for (const char* name :
       {"../model.safetensors", "/etc/model.safetensors", "a/b.safetensors", "..", "",
        ".safetensors", "weights.bin", "a\\\\b.safetensors", "a\\u0000.safetensors"}) {
    write_index(R"({"a":")" + std::string(name) + "\"}");
    EXPECT_TRUE(refusal().starts_with(
        "DIR/model.safetensors.index.json: tensor \"a\": expected the plain name of a .safetensors "
        "file in the same folder, found \""))
        << refusal();
  }
}

TEST_F(HfFolder, RefusesAnIndexOfAnotherStructure) {
  write_shards();
  const std::string where = "DIR/model.safetensors.index.json: ";
  write_index("[]");
  EXPECT_EQ(refusal(), where + "has no object \"weight_map\"");
  write_index("{}");
  EXPECT_EQ(refusal(), where + "\"weight_map\" names no tensor");
  write_index(R"({"a":1})");
  EXPECT_EQ(refusal(), where + "tensor \"a\": expected the name of a file, found number");
  write_index(R"({"a":"x.safetensors","a":"y.safetensors"})");
  EXPECT_EQ(refusal(), where + "tensor \"a\" is there twice");
  write("model.safetensors.index.json", "[1");
  EXPECT_EQ(refusal(), where + "not valid JSON at byte 3");
  write("model.safetensors.index.json", "5");
  EXPECT_EQ(refusal(), where + "has no object \"weight_map\"");
}

TEST_F(HfFolder, NamesWhatADamagedShardIs) {
  write_shards();
  write(second_shard, small_safetensors({"b", "c"}).substr(0, 40));
  EXPECT_TRUE(refusal().starts_with(
      "DIR/model-00002-of-00002.safetensors: truncated: the header should have "));
}

TEST_F(HfFolder, SaysHowToGoOnWithoutSafetensors) {
  write("config.json", "{}");
  EXPECT_EQ(refusal(),
            "DIR: has neither model.safetensors nor model.safetensors.index.json\n"
            "copy or download the weights too");
  write(first_shard, small_safetensors({"a"}));
  EXPECT_EQ(refusal(),
            "DIR: has neither model.safetensors nor model.safetensors.index.json, only "
            "model-00001-of-00002.safetensors\nshards need their index; copy or download it too");
  write("pytorch_model.bin", "PK");
  EXPECT_EQ(refusal(),
            "DIR: has neither model.safetensors nor model.safetensors.index.json, only "
            "pytorch_model.bin\nconvert it to safetensors: in Python, "
            "AutoModelForCausalLM.from_pretrained(folder).save_pretrained(new_folder)");
}

TEST_F(HfFolder, SaysHowToGoOnWithoutAConfig) {
  EXPECT_EQ(refusal(),
            "DIR: is no model folder: config.json is missing\n"
            "give a folder as Hugging Face writes it, or a .gguf file");
  write("adapter_config.json", "{}");
  EXPECT_EQ(refusal(),
            "DIR: is no model folder: config.json is missing\nit is an adapter: give the model it "
            "was trained on, and this folder with --adapter");
  write("m.gguf", "GGUF");
  EXPECT_EQ(refusal(),
            "DIR: is no model folder: config.json is missing\n"
            "it holds a GGUF file: give DIR/m.gguf");
}

TEST_F(HfFolder, RefusesAConfigThatIsNoObject) {
  write("model.safetensors", small_safetensors({"a"}));
  write("config.json", "[1,2]");
  EXPECT_EQ(refusal(), "DIR/config.json: should be a JSON object, is array");
  write("config.json", "{\"a\":");
  EXPECT_EQ(refusal(), "DIR/config.json: not valid JSON at byte 6");
  write("config.json", "");
  EXPECT_EQ(refusal(), "DIR/config.json: not valid JSON at byte 1");
}

}  // namespace
}  // namespace onset
