#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <random>

#include "onset/checkpoint/safetensors.h"
#include "support/file_size_limit.h"
#include "support/support.h"

namespace onset {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using testing::FileSizeLimit;
using testing::TemporaryFolder;

std::vector<std::byte> random_bytes(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

void expect_same(const SafetensorsFile& file, const std::vector<NamedTensor>& tensors) {
  ASSERT_EQ(file.tensors.size(), tensors.size());
  for (const NamedTensor& tensor : tensors) {
    const auto found =
        std::find_if(file.tensors.begin(), file.tensors.end(),
                     [&](const TensorInfo& candidate) { return candidate.name == tensor.name; });
    ASSERT_NE(found, file.tensors.end()) << tensor.name;
    EXPECT_EQ(found->dtype, tensor.dtype);
    EXPECT_EQ(found->shape, tensor.shape);
    ASSERT_EQ(found->bytes, tensor.data.size());
    if (found->bytes == 0) continue;
    EXPECT_EQ(
        std::memcmp(file.file.bytes().data() + found->offset, tensor.data.data(), found->bytes), 0)
        << tensor.name;
  }
}

std::uint64_t data_begin(const SafetensorsFile& file) {
  std::uint64_t begin = file.file.bytes().size();
  for (const TensorInfo& tensor : file.tensors) begin = std::min(begin, tensor.offset);
  return begin;
}

TEST(SafetensorsWriter, WhatIsWrittenIsRead) {
  const TemporaryFolder folder;
  const std::vector<NamedTensor> tensors = {
      {"0.layers.0.resid_post", DType::f32, {2, 3}, random_bytes(24, 1)},
      {"odd \"name\" \\ \n ü", DType::u8, {5}, random_bytes(5, 2)},
      {"scalar", DType::f64, {}, random_bytes(8, 3)},
      {"empty", DType::bf16, {0, 7}, {}},
  };
  write_safetensors(folder.path() / "x", tensors, {{"format", "onset"}, {"ü", "\""}});
  const SafetensorsFile file = read_safetensors(folder.path() / "x");
  expect_same(file, tensors);
  EXPECT_EQ(file.metadata, (std::map<std::string, std::string>{{"format", "onset"}, {"ü", "\""}}));
  EXPECT_EQ(data_begin(file) % 8, 0U);
  EXPECT_EQ(files_in(folder.path()), 1U);
}

TEST(SafetensorsWriter, AFileWithoutTensorsIsSound) {
  const TemporaryFolder folder;
  write_safetensors(folder.path() / "x", {});
  EXPECT_TRUE(read_safetensors(folder.path() / "x").tensors.empty());
}

// More data than waits in memory, so that the header goes into the gap before it.
TEST(SafetensorsWriter, StreamsWhatDoesNotFitInMemory) {
  const TemporaryFolder folder;
  std::vector<NamedTensor> tensors;
  for (unsigned i = 0; i < 5; ++i) {
    tensors.push_back({std::to_string(i), DType::u8, {3'000'001}, random_bytes(3'000'001, i)});
  }
  write_safetensors(folder.path() / "x", tensors);
  const SafetensorsFile file = read_safetensors(folder.path() / "x");
  expect_same(file, tensors);
  EXPECT_EQ(data_begin(file) % 8, 0U);
}

// A header that outgrows the gap moves the data back.
TEST(SafetensorsWriter, MovesTheDataForAHeaderThatOutgrowsItsGap) {
  const TemporaryFolder folder;
  std::vector<NamedTensor> tensors = {
      {"large", DType::u8, {9'000'001}, random_bytes(9'000'001, 9)}};
  for (unsigned i = 0; i < 2000; ++i) {
    tensors.push_back(
        {std::string(1000, 'n') + std::to_string(i), DType::u8, {3}, random_bytes(3, i)});
  }
  write_safetensors(folder.path() / "x", tensors);
  const SafetensorsFile file = read_safetensors(folder.path() / "x");
  expect_same(file, tensors);
  EXPECT_EQ(data_begin(file) % 8, 0U);
}

TEST(SafetensorsWriter, NothingAppearsBeforeCommit) {
  const TemporaryFolder folder;
  const std::vector<std::byte> data(4);
  {
    SafetensorsWriter writer(folder.path() / "x");
    writer.add("a", DType::f32, std::vector<std::int64_t>{1}, data);
    EXPECT_FALSE(fs::exists(folder.path() / "x"));
  }
  EXPECT_EQ(files_in(folder.path()), 0U);
}

TEST(SafetensorsWriter, RefusesWhatReadersWouldRefuse) {
  const TemporaryFolder folder;
  SafetensorsWriter writer(folder.path() / "x");
  const std::vector<std::byte> data(8);
  const std::string where = (folder.path() / "x").string() + ": tensor ";
  const auto add = [&](const std::string& name, DType dtype, std::vector<std::int64_t> shape) {
    return error_of([&] { writer.add(name, dtype, shape, data); });
  };
  EXPECT_EQ(add("a", DType::f32, {3}), where + "\"a\": F32 [3] takes 12 bytes, given 8");
  EXPECT_EQ(add("a", DType::f32, {-2, -1}),
            where + "\"a\": F32 [-2, -1] takes too many bytes, given 8");
  EXPECT_EQ(add("a", DType::q4_0, {32}),
            where + "\"a\": type Q4_0 cannot be written to safetensors");
  EXPECT_EQ(add("__metadata__", DType::f32, {2}),
            where + "\"__metadata__\": is no name that a safetensors file can hold");
  EXPECT_EQ(add("\xFF", DType::f32, {2}),
            where + "\"\xEF\xBF\xBD\": is no name that a safetensors file can hold");
  writer.add("a", DType::f32, std::vector<std::int64_t>{2}, data);
  EXPECT_EQ(add("a", DType::f32, {2}), where + "\"a\" is added twice");
}

TEST(SafetensorsWriter, AFullDiskIsAnErrorThatLeavesNothingBehind) {
  const TemporaryFolder folder;
  for (const std::size_t count : {std::size_t{200'000}, std::size_t{12'000'000}}) {
    const std::vector<NamedTensor> tensors = {
        {"a", DType::u8, {static_cast<std::int64_t>(count)}, random_bytes(count, 1)}};
    for (const rlim_t limit : {rlim_t{0}, rlim_t{10}, rlim_t{100'000}, rlim_t{1'500'000}}) {
      if (limit > count) continue;
      const FileSizeLimit full(limit);
      try {
        write_safetensors(folder.path() / "x", tensors);
        ADD_FAILURE() << "written in spite of the limit " << limit;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::resource);
        EXPECT_EQ(std::string(error.what()),
                  (folder.path() / "x").string() + ": cannot write: File too large");
      }
      EXPECT_EQ(files_in(folder.path()), 0U);
    }
  }
}

TEST(SafetensorsWriter, AFailedWriteKeepsTheFileThatWasThere) {
  const TemporaryFolder folder;
  const auto path = folder.write("x", "before");
  {
    const FileSizeLimit full(10);
    EXPECT_NE(error_of([&] {
                write_safetensors(path, {{"a", DType::u8, {100}, random_bytes(100, 1)}});
              }),
              "");
  }
  EXPECT_EQ(read_file(path), "before");
}

}  // namespace
}  // namespace onset
