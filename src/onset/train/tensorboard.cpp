#include "onset/train/tensorboard.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>
#include <cmath>

#include "onset/base/error.h"

namespace onset {
namespace {

constexpr std::uint32_t castagnoli_reversed = 0x82F63B78U;
constexpr std::uint32_t mask_delta = 0xA282EAD8U;  // tensorflow/core/lib/hash/crc32c.h

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc & 1U) != 0 ? crc >> 1U ^ castagnoli_reversed : crc >> 1U;
    }
    table[byte] = crc;
  }
  return table;
}

constexpr auto crc_table = make_crc_table();

template <typename Unsigned>
std::string little_endian(Unsigned value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(Unsigned); ++i) {
    bytes += static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
  }
  return bytes;
}

// ---- protobuf's wire format: a field's number and type, then its value

constexpr unsigned wire_varint = 0;
constexpr unsigned wire_fixed64 = 1;
constexpr unsigned wire_bytes = 2;
constexpr unsigned wire_fixed32 = 5;

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80U; value >>= 7U) {
    bytes += static_cast<char>(static_cast<unsigned char>(value | 0x80U));
  }
  return bytes + static_cast<char>(static_cast<unsigned char>(value));
}

std::string key(unsigned field, unsigned type) { return varint(field << 3U | type); }

std::string bytes_field(unsigned field, std::string_view value) {
  return key(field, wire_bytes) + varint(value.size()) + std::string(value);
}

std::string double_field(unsigned field, double value) {
  return key(field, wire_fixed64) + little_endian(std::bit_cast<std::uint64_t>(value));
}

std::string float_field(unsigned field, float value) {
  return key(field, wire_fixed32) + little_endian(std::bit_cast<std::uint32_t>(value));
}

std::string int_field(unsigned field, std::int64_t value) {
  return key(field, wire_varint) + varint(static_cast<std::uint64_t>(value));
}

// ---- messages of tensorflow/core/util/event.proto and framework/summary.proto

namespace event {
constexpr unsigned wall_time = 1;
constexpr unsigned step = 2;
constexpr unsigned file_version = 3;
constexpr unsigned summary = 5;
constexpr unsigned session_log = 7;
}  // namespace event
namespace summary {
constexpr unsigned value = 1;
constexpr unsigned value_tag = 1;
constexpr unsigned value_simple = 2;
}  // namespace summary
namespace session_log {
constexpr unsigned status = 1;
constexpr std::int64_t start = 1;
}  // namespace session_log

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Names are taken in turn until one is free: two runs may begin in the same second.
AppendFile open_event_file(const std::filesystem::path& folder) {
  const auto seconds = static_cast<std::int64_t>(now());
  constexpr int most_files = 1000;
  for (int i = 0;; ++i) {
    const auto path =
        folder / str_cat("events.out.tfevents.", seconds, ".onset.", ::getpid(), ".", i);
    if (i < most_files && std::filesystem::exists(path)) continue;
    return {path, AppendFile::Mode::create_new};
  }
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char c : bytes)
    crc = crc >> 8U ^ crc_table[(crc ^ static_cast<unsigned char>(c)) & 0xFFU];
  return ~crc;
}

std::uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + mask_delta;
}

std::string framed_record(std::string_view data) {
  const std::string length = little_endian(static_cast<std::uint64_t>(data.size()));
  return length + little_endian(masked_crc32c(length)) + std::string(data) +
         little_endian(masked_crc32c(data));
}

std::string tensorboard_tag(const std::string& metric) {
  constexpr std::string_view evaluation = "eval_";
  if (metric.starts_with(evaluation)) return "eval/" + metric.substr(evaluation.size());
  return "train/" + metric;
}

EventFile::EventFile(const std::filesystem::path& folder, std::optional<std::int64_t> first_step)
    : file_(open_event_file(folder)) {
  file_.write(framed_record(double_field(event::wall_time, now()) +
                            bytes_field(event::file_version, "brain.Event:2")));
  if (!first_step) return;
  file_.write(framed_record(
      double_field(event::wall_time, now()) + int_field(event::step, *first_step) +
      bytes_field(event::session_log, int_field(session_log::status, session_log::start))));
}

void EventFile::write(std::int64_t step, double wall_time, const Metrics& metrics) {
  std::string values;
  for (const auto& [name, value] : metrics) {
    if (!std::isfinite(value)) continue;
    values += bytes_field(summary::value,
                          bytes_field(summary::value_tag, tensorboard_tag(name)) +
                              float_field(summary::value_simple, static_cast<float>(value)));
  }
  file_.write(framed_record(double_field(event::wall_time, wall_time) +
                            int_field(event::step, step) + bytes_field(event::summary, values)));
}

}  // namespace onset
