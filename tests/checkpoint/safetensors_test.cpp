#include "onset/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include "checkpoint/files.h"
#include "support/support.h"

namespace onset {
namespace {

using testing::error_of;
using testing::safetensors;
using testing::TemporaryFolder;

// What reading a file of these bytes says, without the path it begins with.
std::string refusal(const std::string& bytes) {
  const TemporaryFolder folder;
  const auto path = folder.write("x.safetensors", bytes);
  const std::string message = error_of([&] { (void)read_safetensors(path); });
  EXPECT_TRUE(message.starts_with(path.string() + ": ")) << message;
  return message.substr(std::min(message.size(), path.string().size() + 2));
}

std::string refused_header(std::string_view header, std::size_t data_bytes = 8) {
  return refusal(safetensors(header, data_bytes));
}

TEST(Safetensors, ReadsNamesTypesShapesAndMetadata) {
  const TemporaryFolder folder;
  const auto path =
      folder.write("x.safetensors",
                   safetensors(R"({"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},)"
                               R"("__metadata__":{"format":"pt","ü":"\"x\""},)"
                               R"("a":{"data_offsets":[0,4],"shape":[],"dtype":"F32"},)"
                               R"("empty":{"dtype":"U8","shape":[0,9],"data_offsets":[16,16]}}   )",
                               16));
  const SafetensorsFile file = read_safetensors(path);
  ASSERT_EQ(file.tensors.size(), 3U);
  EXPECT_EQ(file.metadata, (std::map<std::string, std::string>{{"format", "pt"}, {"ü", "\"x\""}}));
  const TensorInfo& b = file.tensors[0];
  EXPECT_EQ(b.name, "b");
  EXPECT_EQ(describe(b), "BF16 [2, 3]");
  EXPECT_EQ(b.bytes, 12U);
  EXPECT_EQ(b.offset, file.file.bytes().size() - 12);
  EXPECT_EQ(file.tensors[1].elements(), 1);
  EXPECT_EQ(file.tensors[2].elements(), 0);
}

TEST(Safetensors, AcceptsAFileWithoutTensors) {
  const TemporaryFolder folder;
  EXPECT_TRUE(read_safetensors(folder.write("x", safetensors("{}", 0))).tensors.empty());
}

TEST(Safetensors, RefusesFilesThatAreTooShort) {
  EXPECT_EQ(refusal(""), "is not a safetensors file: expected at least 8 bytes, found 0");
  EXPECT_EQ(refusal("1234567"), "is not a safetensors file: expected at least 8 bytes, found 7");
  EXPECT_EQ(refusal(safetensors("{}", 0).substr(0, 9)),
            "truncated: the header should have 2 bytes, 1 are there");
  EXPECT_EQ(refusal(std::string(8, '\0')),
            "is not a safetensors file: its header does not begin with \"{\"");
  EXPECT_EQ(refusal(std::string(8, '\xFF') + "{}"),
            "is not a safetensors file: its header should have at most 100000000 bytes, says "
            "18446744073709551615");
}

TEST(Safetensors, RefusesHeadersOfAnotherStructure) {
  EXPECT_EQ(refused_header("{"), "the header is not valid JSON at byte 2 of the header");
  EXPECT_EQ(refused_header("{} x"), "the header is not valid JSON at byte 4 of the header");
  EXPECT_EQ(refused_header("{\"\xFF\":{}}"),
            "the header is not valid JSON at byte 3 of the header");
  EXPECT_EQ(refused_header(R"({"a":1})"), "header: \"a\" should be an object, is 1");
  EXPECT_EQ(refused_header(R"({"a":{}})"), "header: \"a\" has no dtype");
  EXPECT_EQ(refused_header(R"({"a":{"dtype":"F32","shape":[2]}})"),
            "header: \"a\" has no data_offsets");
  EXPECT_EQ(refused_header(R"({"a":{"dtype":5}})"),
            "header: \"a\": dtype should be a string, is 5");
  EXPECT_EQ(refused_header(R"({"a":{"shape":"x"}})"),
            "header: \"a\": shape should be an array, is a string");
  EXPECT_EQ(refused_header(R"({"a":{"x":1}})"),
            "header: \"a\" has the unknown key \"x\", expected dtype, shape and data_offsets");
  EXPECT_EQ(refused_header(R"({"a":{"dtype":"F32","dtype":"F32"}})"),
            "header: \"a\" has the key \"dtype\" twice");
  EXPECT_EQ(refused_header(R"({"a":{"data_offsets":[0]}})"),
            "header: \"a\": data_offsets should be two numbers, found 1");
  EXPECT_EQ(refused_header(R"({"a":{"data_offsets":[0,8,9]}})"),
            "header: \"a\": data_offsets should be two whole numbers, found 9");
  EXPECT_EQ(refused_header(R"({"a":{"shape":[[2]]}})"),
            "header: \"a\": shape should hold whole numbers from 0 to 2^63 - 1, found an array");
  EXPECT_EQ(refused_header(R"({"__metadata__":{"a":1}})"),
            "header: \"__metadata__\": \"a\" should be a string, is 1");
}

TEST(Safetensors, RefusesANameGivenTwice) {
  const std::string entry = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  EXPECT_EQ(refused_header("{" + entry + "," + entry + "}"), "header: \"a\" is there twice");
}

TEST(Safetensors, RefusesShapesThatCannotBe) {
  const auto with_shape = [](std::string_view shape) {
    return refused_header(R"({"a":{"dtype":"F32","shape":)" + std::string(shape) +
                          R"(,"data_offsets":[0,8]}})");
  };
  EXPECT_EQ(with_shape("[-2]"),
            "header: \"a\": shape should hold whole numbers from 0 to 2^63 - 1, found -2");
  EXPECT_EQ(with_shape("[1.5]"),
            "header: \"a\": shape should hold whole numbers from 0 to 2^63 - 1, found 1.5");
  EXPECT_EQ(with_shape("[9223372036854775808]"),
            "header: \"a\": shape should hold whole numbers from 0 to 2^63 - 1, found "
            "9223372036854775808");
  EXPECT_EQ(
      with_shape("[4294967296,4294967296]"),
      "tensor \"a\": its shape [4294967296, 4294967296] has more elements than a file can hold");
  EXPECT_EQ(with_shape("[4611686018427387904]"),
            "tensor \"a\": its shape [4611686018427387904] has more elements than a file can hold");
  EXPECT_EQ(
      with_shape("[0,9223372036854775807,9223372036854775807]"),
      "tensor \"a\": its shape [0, 9223372036854775807, 9223372036854775807] has more elements "
      "than a file can hold");
  EXPECT_EQ(with_shape("[3]"), "tensor \"a\": F32 [3] takes 12 bytes, data_offsets span 8");
}

TEST(Safetensors, RefusesTypesThatAreNotRead) {
  EXPECT_EQ(refused_header(R"({"a":{"dtype":"U32","shape":[2],"data_offsets":[0,8]}})"),
            "tensor \"a\": its type \"U32\" is not one that is read: F64, F32, F16, BF16, F8_E4M3, "
            "F8_E5M2, I64, I32, I16, I8, U8, BOOL");
}

TEST(Safetensors, RefusesRangesThatDoNotTileTheData) {
  const auto two = [](std::string_view first, std::string_view second, std::size_t data_bytes) {
    return refused_header(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + std::string(first) +
                              R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" +
                              std::string(second) + "}}",
                          data_bytes);
  };
  EXPECT_EQ(
      two("[0,4]", "[2,6]", 6),
      "tensor \"b\": data_offsets overlap the tensor before it: expected to begin at 4, found 2");
  EXPECT_EQ(two("[5,9]", "[0,4]", 9),
            "tensor \"a\": data_offsets leave a hole before it: expected to begin at 4, found 5");
  EXPECT_EQ(two("[0,4]", "[4,8]", 11), "3 bytes after the last tensor belong to none");
  EXPECT_EQ(two("[0,4]", "[8,4]", 8),
            "tensor \"b\": data_offsets end at 4, before they begin at 8");
  EXPECT_EQ(two("[0,4]", "[4,8]", 7),
            "tensor \"b\": truncated: its data ends at byte 8 of the data, the file holds 7\n"
            "the file is incomplete; copy or download it again");
  EXPECT_EQ(two("[0,4]", "[18446744073709551612,18446744073709551615]", 8),
            "tensor \"b\": U8 [4] takes 4 bytes, data_offsets span 3");
}

TEST(Safetensors, ShowsHostileNamesSafely) {
  const std::string name(5000, 'n');
  const std::string message = refused_header("{\"\\u001b[31m" + name + "\":1}");
  EXPECT_TRUE(message.starts_with(R"(header: "\x1b[31mnnn)")) << message;
  EXPECT_LT(message.size(), 300U);
}

TEST(Safetensors, DeepNestingIsRefusedWithoutRecursion) {
  EXPECT_EQ(refused_header("{\"a\":" + std::string(3'000'000, '[')),
            "header: \"a\" should be an object, is an array");
}

}  // namespace
}  // namespace onset
