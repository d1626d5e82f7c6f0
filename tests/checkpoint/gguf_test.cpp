#include "onset/checkpoint/gguf.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "checkpoint/files.h"
#include "support/support.h"

namespace onset {
namespace {

using testing::append;
using testing::error_of;
using testing::GgufBuilder;
using testing::TemporaryFolder;

constexpr std::uint32_t f32_type = 0;
constexpr std::uint32_t q8_0_type = 8;

// What reading a file of these bytes says, without the path it begins with.
std::string refusal(const std::string& bytes) {
  const TemporaryFolder folder;
  const auto path = folder.write("x.gguf", bytes);
  const std::string message = error_of([&] { (void)read_gguf(path); });
  EXPECT_TRUE(message.starts_with(path.string() + ": ")) << message;
  return message.substr(std::min(message.size(), path.string().size() + 2));
}

GgufFile read(const std::string& bytes) {
  const TemporaryFolder folder;
  return read_gguf(folder.write("x.gguf", bytes));
}

TEST(Gguf, ReadsEveryKindOfMetadata) {
  std::string strings;
  GgufBuilder::append_string(strings, "a");
  GgufBuilder::append_string(strings, "");
  GgufBuilder::append_string(strings, "\xFFü");
  std::string halves;
  append(halves, 0.5F);
  append(halves, -2.0F);
  std::string words;
  append<std::int16_t>(words, -3);
  append<std::int16_t>(words, 4);
  const GgufFile file = read(GgufBuilder()
                                 .number<std::uint8_t>("u8", 0, 200)
                                 .number<std::int8_t>("i8", 1, -100)
                                 .number<std::uint16_t>("u16", 2, 60000)
                                 .number<std::int16_t>("i16", 3, -30000)
                                 .number<std::uint32_t>("u32", 4, 4000000000U)
                                 .number<std::int32_t>("i32", 5, -2000000000)
                                 .number<float>("f32", 6, 0.1F)
                                 .number<std::uint8_t>("bool", 7, 1)
                                 .text("text", "ü\xFF")
                                 .array("strings", 8, 3, strings)
                                 .array("halves", 6, 2, halves)
                                 .array("words", 3, 2, words)
                                 .array("flags", 7, 2, std::string("\1\0", 2))
                                 .array("none", 8, 0, "")
                                 .number<std::uint64_t>("u64", 10, UINT64_MAX)
                                 .number<std::int64_t>("i64", 11, INT64_MIN)
                                 .number<double>("f64", 12, 0.1)
                                 .build(0));
  EXPECT_EQ(file.scalars, Json({{"u8", 200},
                                {"i8", -100},
                                {"u16", 60000},
                                {"i16", -30000},
                                {"u32", 4000000000U},
                                {"i32", -2000000000},
                                {"f32", double{0.1F}},
                                {"bool", true},
                                {"text", "ü\xEF\xBF\xBD"},
                                {"u64", UINT64_MAX},
                                {"i64", INT64_MIN},
                                {"f64", 0.1}}));
  const auto& arrays = file.arrays;
  EXPECT_EQ(arrays.at("strings").strings(), (std::vector<std::string_view>{"a", "", "\xFFü"}));
  EXPECT_EQ(arrays.at("strings").json(), Json({"a", "", "\xEF\xBF\xBDü"}));
  EXPECT_EQ(arrays.at("halves").numbers(), (std::vector<double>{0.5, -2}));
  EXPECT_EQ(arrays.at("words").integers(), (std::vector<std::int64_t>{-3, 4}));
  EXPECT_EQ(arrays.at("words").numbers(), (std::vector<double>{-3, 4}));
  EXPECT_EQ(arrays.at("flags").json(), Json({true, false}));
  EXPECT_EQ(arrays.at("none").size(), 0U);
}

TEST(Gguf, ArraysRefuseToBeReadAsAnotherKind) {
  std::string text;
  GgufBuilder::append_string(text, "a");
  std::string big;
  append<std::uint64_t>(big, UINT64_MAX);
  std::string half;
  append(half, 0.5F);
  const TemporaryFolder folder;
  const auto path = folder.write("x.gguf", GgufBuilder()
                                               .array("text", 8, 1, text)
                                               .array("big", 10, 1, big)
                                               .array("half", 6, 1, half)
                                               .build(0));
  const GgufFile file = read_gguf(path);
  const std::string where = path.string() + ": metadata entry ";
  EXPECT_EQ(error_of([&] { (void)file.arrays.at("text").integers(); }),
            where + "\"text\": should be an array of integers, is one of strings");
  EXPECT_EQ(error_of([&] { (void)file.arrays.at("text").numbers(); }),
            where + "\"text\": should be an array of numbers, is one of strings");
  EXPECT_EQ(error_of([&] { (void)file.arrays.at("half").integers(); }),
            where + "\"half\": should be an array of integers, is one of floating-point numbers");
  EXPECT_EQ(error_of([&] { (void)file.arrays.at("half").strings(); }),
            where + "\"half\": should be an array of strings, is one of numbers");
  EXPECT_EQ(error_of([&] { (void)file.arrays.at("big").integers(); }),
            where + "\"big\": holds a number above 2^63 - 1");
}

TEST(Gguf, ReadsVersion2AndReversesDimensions) {
  GgufBuilder builder;
  builder.version = 2;
  builder.tensor("a", q8_0_type, {64, 3}, 0).tensor("b", f32_type, {1}, 224);
  const std::string bytes = builder.build(228);
  const GgufFile file = read(bytes);
  EXPECT_EQ(file.version, 2U);
  ASSERT_EQ(file.tensors.size(), 2U);
  EXPECT_EQ(describe(file.tensors[0]), "Q8_0 [3, 64]");
  EXPECT_EQ(file.tensors[0].bytes, 3U * 2 * 34);
  EXPECT_EQ(file.tensors[0].offset, bytes.size() - 228);
  EXPECT_EQ(file.tensors[0].offset % 32, 0U);
  EXPECT_EQ(file.tensors[1].offset, bytes.size() - 4);
}

TEST(Gguf, HonoursTheAlignmentOfTheFile) {
  GgufBuilder builder;
  builder.alignment = 4096;
  builder.number<std::uint32_t>("general.alignment", 4, 4096).tensor("a", f32_type, {2}, 0);
  const GgufFile file = read(builder.build(8));
  EXPECT_EQ(file.tensors.at(0).offset, 4096U);
  for (const std::uint32_t bad : {0U, 3U, 48U}) {
    EXPECT_EQ(refusal(GgufBuilder().number("general.alignment", 4, bad).build(0)),
              "general.alignment should be a power of two, is " + std::to_string(bad));
  }
  EXPECT_EQ(refusal(GgufBuilder().text("general.alignment", "x").build(0)),
            "key \"general.alignment\" should be an integer, is string");
  const std::string huge =
      refusal(GgufBuilder()
                  .number<std::uint64_t>("general.alignment", 10, std::uint64_t{1} << 62U)
                  .tensor("a", f32_type, {2}, 0)
                  .build(8));
  EXPECT_TRUE(huge.starts_with("tensor \"a\": truncated: F32 [2] takes 8 bytes")) << huge;
}

TEST(Gguf, NamesFilesThatAreSomethingElse) {
  EXPECT_EQ(refusal(""), "is not a GGUF file: it is empty");
  EXPECT_EQ(refusal("1234567"), "is not a GGUF file: it does not begin with \"GGUF\"");
  EXPECT_EQ(refusal("FUGG\3"),
            "is not a GGUF file: it is a big-endian GGUF file, which is not read");
  EXPECT_EQ(
      refusal("version https://git-lfs.github.com/spec/v1\n"),
      "is not a GGUF file: it looks like a Git LFS pointer; fetch the file itself with git lfs "
      "pull");
  EXPECT_EQ(refusal("tjgg\3"),
            "is not a GGUF file: it is an older ggml file; convert the model to GGUF again");
  EXPECT_EQ(refusal("GGUF\3"),
            "truncated or damaged: the version at byte 4 takes 4 bytes, 1 are left\n"
            "the file is incomplete; copy or download it again");
}

TEST(Gguf, RefusesVersionsThatAreNotRead) {
  const auto version = [](std::uint32_t number) {
    GgufBuilder builder;
    builder.version = number;
    return refusal(builder.build(0));
  };
  EXPECT_EQ(version(1),
            "is GGUF version 1, versions 2 and 3 are read; convert the model again with a newer "
            "llama.cpp");
  EXPECT_EQ(version(0x03000000), "is a big-endian GGUF file, only little-endian ones are read");
  EXPECT_EQ(version(4), "is GGUF version 4, versions 2 and 3 are read");
  EXPECT_EQ(version(0), "is GGUF version 0, versions 2 and 3 are read");
}

// Counts that lie are refused before anything is allocated for them.
TEST(Gguf, RefusesCountsBeyondTheFile) {
  const auto header = [](std::uint64_t tensors, std::uint64_t entries) {
    std::string bytes = "GGUF";
    append<std::uint32_t>(bytes, 3);
    append(bytes, tensors);
    append(bytes, entries);
    return refusal(bytes + std::string(100, '\0'));
  };
  EXPECT_EQ(
      header(0, UINT64_MAX),
      "truncated or damaged: says it has 18446744073709551615 metadata entries, the 100 bytes "
      "that follow cannot hold them");
  EXPECT_EQ(
      header(5, 0),
      "truncated or damaged: says it has 5 tensors, the 100 bytes that follow cannot hold them");
  for (const std::uint32_t type : {4U, 8U, 10U}) {
    const std::string message =
        refusal(GgufBuilder().array("k", type, std::uint64_t{1} << 61U, "").build(0));
    EXPECT_TRUE(
        message.starts_with("truncated or damaged: says it has 2305843009213693952 elements "
                            "in the array of metadata entry \"k\""))
        << message;
  }
}

TEST(Gguf, RefusesMetadataThatIsUnsound) {
  EXPECT_EQ(refusal(GgufBuilder().text("k", "").text("k", "").build(0)),
            "metadata entry \"k\" is there twice");
  EXPECT_EQ(refusal(GgufBuilder().text("k", "").array("k", 4, 0, "").build(0)),
            "metadata entry \"k\" is there twice");
  EXPECT_EQ(refusal(GgufBuilder().text("", "x").build(0)),
            "metadata entry \"\": its name is empty");
  EXPECT_EQ(refusal(GgufBuilder().text("\xC0", "x").build(0)),
            "metadata entry \"\xEF\xBF\xBD\": its name is not valid UTF-8");
  EXPECT_EQ(refusal(GgufBuilder().entry("k", 13, "12345678").build(0)),
            "metadata entry \"k\": expected a type from 0 to 12, found 13");
  EXPECT_EQ(refusal(GgufBuilder().entry("k", 7, "\2").build(0)),
            "metadata entry \"k\": expected 0 or 1 as a boolean, found 2");
  EXPECT_EQ(refusal(GgufBuilder().array("k", 9, 0, "").build(0)),
            "metadata entry \"k\": arrays of arrays are not read");
}

TEST(Gguf, RefusesTypesThatAreNotReadByName) {
  const auto type = [](std::uint32_t number) {
    const std::string message = refusal(GgufBuilder().tensor("a.b", number, {256}, 0).build(512));
    EXPECT_TRUE(message.ends_with(
        " is not read\nquantise the model to one of the types that are read: F32, F16, Q4_0, Q4_1, "
        "Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL, IQ4_XS, I8, I16, I32, I64, F64, "
        "BF16"))
        << message;
    return message.substr(0, message.find(" is not read"));
  };
  EXPECT_EQ(type(16), "tensor \"a.b\": type IQ2_XXS");
  EXPECT_EQ(type(34), "tensor \"a.b\": type TQ1_0");
  EXPECT_EQ(type(39), "tensor \"a.b\": type MXFP4");
  EXPECT_EQ(type(40), "tensor \"a.b\": type NVFP4");
  EXPECT_EQ(type(31), "tensor \"a.b\": type Q4_0_4_4 (removed from GGUF)");
  EXPECT_EQ(type(77), "tensor \"a.b\": type number 77");
}

TEST(Gguf, RefusesTensorsThatAreUnsound) {
  const auto tensor = [](std::string_view name, std::uint32_t type,
                         const std::vector<std::uint64_t>& sizes, std::uint64_t offset = 0) {
    return refusal(GgufBuilder().tensor(name, type, sizes, offset).build(64));
  };
  EXPECT_EQ(tensor("", f32_type, {2}), "tensor \"\": its name is empty");
  EXPECT_EQ(tensor("\xFF", f32_type, {2}), "tensor \"\xEF\xBF\xBD\": its name is not valid UTF-8");
  EXPECT_EQ(tensor("a", f32_type, {1, 1, 1, 1, 1}),
            "tensor \"a\": expected at most 4 dimensions, found 5");
  EXPECT_EQ(tensor("a", f32_type, {UINT64_MAX}),
            "tensor \"a\": expected dimensions below 2^63, found 18446744073709551615");
  EXPECT_EQ(
      tensor("a", f32_type, {std::uint64_t{1} << 32U, std::uint64_t{1} << 31U}),
      "tensor \"a\": its shape [2147483648, 4294967296] has more elements than a file can hold");
  EXPECT_EQ(tensor("a", q8_0_type, {2, 32}),
            "tensor \"a\": Q8_0 [32, 2]: expected rows of a multiple of 32 elements, found 2");
  EXPECT_EQ(tensor("a", f32_type, {2}, 8),
            "tensor \"a\": its offset 8 should be a multiple of the alignment 32");
  const std::string hint = "\nthe file is incomplete; copy or download it again";
  EXPECT_EQ(
      tensor("a", f32_type, {17}),
      "tensor \"a\": truncated: F32 [17] takes 68 bytes at offset 0 of the data, the file holds "
      "64" +
          hint);
  EXPECT_EQ(tensor("a", f32_type, {1}, UINT64_MAX - 31),
            "tensor \"a\": truncated: F32 [1] takes 4 bytes at offset 18446744073709551584 of the "
            "data, the file holds 64" +
                hint);
}

TEST(Gguf, RefusesTensorsThatShareANameOrBytes) {
  EXPECT_EQ(refusal(GgufBuilder().tensor("a", 0, {2}, 0).tensor("a", 0, {2}, 32).build(64)),
            "tensor \"a\" is there twice");
  EXPECT_EQ(refusal(GgufBuilder().tensor("a", 0, {9}, 0).tensor("b", 0, {2}, 32).build(64)),
            "tensors \"a\" and \"b\" overlap");
  EXPECT_EQ(refusal(GgufBuilder().tensor("a", 0, {2}, 0).tensor("b", 0, {2}, 0).build(64)),
            "tensors \"a\" and \"b\" overlap");
}

TEST(Gguf, AFileOfMetadataAloneIsSound) {
  EXPECT_TRUE(read(GgufBuilder().text("k", "v").build(0)).tensors.empty());
}

TEST(Gguf, RecognisesItselfByTheMagicNumber) {
  const TemporaryFolder folder;
  EXPECT_TRUE(looks_like_gguf(folder.write("a", GgufBuilder().build(0))));
  EXPECT_FALSE(looks_like_gguf(folder.write("b.gguf", "GGU")));
  EXPECT_FALSE(looks_like_gguf(folder.path()));
  EXPECT_FALSE(looks_like_gguf(folder.path() / "absent"));
}

}  // namespace
}  // namespace onset
