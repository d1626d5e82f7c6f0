#include "onset/train/tensorboard.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <variant>

#include "onset/base/file.h"
#include "support/support.h"

namespace onset {
namespace {

using testing::TemporaryFolder;

// CRC-32C by polynomial division, bit by bit, most significant bit first: another way than the
// table's.
std::uint32_t divided_crc32c(std::string_view bytes) {
  const auto reversed = [](std::uint32_t value, int bits) {
    std::uint32_t result = 0;
    for (int i = 0; i < bits; ++i) result |= (value >> i & 1U) << (bits - 1 - i);
    return result;
  };
  std::uint32_t rest = ~0U;
  for (const char c : bytes) {
    rest ^= reversed(static_cast<unsigned char>(c), 8) << 24U;
    for (int bit = 0; bit < 8; ++bit) {
      rest = (rest & 0x80000000U) != 0 ? rest << 1U ^ 0x1EDC6F41U : rest << 1U;
    }
  }
  return ~reversed(rest, 32);
}

template <typename Value>
Value take(std::string_view& bytes) {
  Value value{};
  std::memcpy(&value, bytes.substr(0, sizeof(value)).data(), sizeof(value));
  bytes.remove_prefix(sizeof(value));
  return value;
}

std::uint64_t take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const auto byte = take<std::uint8_t>(bytes);
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80U) return value;
  }
}

// A protobuf message as its fields, whatever they mean.
struct Field {
  std::uint64_t number = 0;
  std::variant<std::uint64_t, double, float, std::string> value;
};

std::vector<Field> fields_of(std::string_view bytes) {
  std::vector<Field> fields;
  while (!bytes.empty()) {
    const std::uint64_t key = take_varint(bytes);
    Field field{.number = key >> 3U, .value = {}};
    if ((key & 7U) == 0) field.value = take_varint(bytes);
    if ((key & 7U) == 1) field.value = take<double>(bytes);
    if ((key & 7U) == 5) field.value = take<float>(bytes);
    if ((key & 7U) == 2) {
      const std::uint64_t length = take_varint(bytes);
      field.value = std::string(bytes.substr(0, length));
      bytes.remove_prefix(length);
    }
    fields.push_back(std::move(field));
  }
  return fields;
}

// The records of a file, with both checksums checked.
std::vector<std::vector<Field>> events_of(const std::filesystem::path& path) {
  const std::string content = read_file(path);
  const auto masked = [](std::string_view bytes) {
    const std::uint32_t crc = divided_crc32c(bytes);
    return static_cast<std::uint32_t>((crc >> 15U | crc << 17U) + 0xA282EAD8U);
  };
  std::vector<std::vector<Field>> events;
  for (std::string_view rest = content; !rest.empty();) {
    const std::string_view frame = rest.substr(0, 8);
    const auto length = take<std::uint64_t>(rest);
    EXPECT_EQ(take<std::uint32_t>(rest), masked(frame));
    const std::string_view data = rest.substr(0, length);
    rest.remove_prefix(length);
    EXPECT_EQ(take<std::uint32_t>(rest), masked(data));
    events.push_back(fields_of(data));
  }
  return events;
}

TEST(Crc32c, HasTheValuesOfRfc3720) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43U);
  EXPECT_EQ(divided_crc32c("123456789"), 0xE3069283U);
}

// Every event file of TensorFlow begins so: a first record of 24 bytes.
TEST(EventFile, FramesRecordsAsTensorFlowDoes) {
  EXPECT_EQ(framed_record(std::string(24, 'x')).substr(0, 12),
            std::string("\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22", 12));
}

TEST(EventFile, HoldsAVersionAndScalarsByStep) {
  const TemporaryFolder folder;
  EventFile file(folder.path(), std::nullopt);
  file.write(300, 1'700'000'000.5,
             {{"loss", 2.5}, {"eval_loss", -1}, {"kl", std::numeric_limits<double>::quiet_NaN()}});
  EXPECT_EQ(file.path().filename().string().find("events.out.tfevents."), 0U);
  const auto events = events_of(file.path());
  ASSERT_EQ(events.size(), 2U);
  ASSERT_EQ(events[0].size(), 2U);
  EXPECT_EQ(events[0][1].number, 3U);
  EXPECT_EQ(std::get<std::string>(events[0][1].value), "brain.Event:2");
  ASSERT_EQ(events[1].size(), 3U);
  EXPECT_EQ(events[1][0].number, 1U);
  EXPECT_EQ(std::get<double>(events[1][0].value), 1'700'000'000.5);
  EXPECT_EQ(events[1][1].number, 2U);
  EXPECT_EQ(std::get<std::uint64_t>(events[1][1].value), 300U);
  EXPECT_EQ(events[1][2].number, 5U);
  const auto values = fields_of(std::get<std::string>(events[1][2].value));
  ASSERT_EQ(values.size(), 2U);
  const auto loss = fields_of(std::get<std::string>(values[0].value));
  EXPECT_EQ(values[0].number, 1U);
  EXPECT_EQ(loss[0].number, 1U);
  EXPECT_EQ(std::get<std::string>(loss[0].value), "train/loss");
  EXPECT_EQ(loss[1].number, 2U);
  EXPECT_EQ(std::get<float>(loss[1].value), 2.5F);
  const auto evaluation = fields_of(std::get<std::string>(values[1].value));
  EXPECT_EQ(std::get<std::string>(evaluation[0].value), "eval/loss");
  EXPECT_EQ(std::get<float>(evaluation[1].value), -1.0F);
}

// SessionLog.START at a step: readers forget what earlier files say of it and of later ones.
TEST(EventFile, OfARunThatGoesOnIsAnotherFileAndSaysSince) {
  const TemporaryFolder folder;
  EventFile first(folder.path(), std::nullopt);
  first.write(1, 0, {{"loss", 1}});
  const std::string before = read_file(first.path());
  EventFile second(folder.path(), 5);
  EXPECT_NE(second.path(), first.path());
  EXPECT_EQ(read_file(first.path()), before);
  const auto events = events_of(second.path());
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(std::get<std::uint64_t>(events[1][1].value), 5U);
  EXPECT_EQ(events[1][2].number, 7U);
  const auto log = fields_of(std::get<std::string>(events[1][2].value));
  EXPECT_EQ(log.at(0).number, 1U);
  EXPECT_EQ(std::get<std::uint64_t>(log.at(0).value), 1U);
}

}  // namespace
}  // namespace onset
