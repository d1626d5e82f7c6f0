// TensorBoard's event files with scalars, written by hand: records in TensorFlow's framing (length,
// masked crc32c, data, masked crc32c) that hold protobuf messages Event. Torch-free.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "onset/train/append_file.h"
#include "onset/train/metrics.h"

namespace onset {

// CRC-32C (Castagnoli; RFC 3720, appendix B.4), and TensorFlow's masked form of it.
[[nodiscard]] std::uint32_t crc32c(std::string_view bytes);
[[nodiscard]] std::uint32_t masked_crc32c(std::string_view bytes);

// One record in TensorFlow's framing.
[[nodiscard]] std::string framed_record(std::string_view data);

// The tag that transformers gives a metric: "eval_loss" is "eval/loss", "loss" is "train/loss".
[[nodiscard]] std::string tensorboard_tag(const std::string& metric);

class EventFile {
 public:
  // A new file "events.out.tfevents.TIME.onset.PID.N" in the folder, so that an earlier one of a
  // run that goes on is never touched. `first_step`: of such a run; readers then forget what
  // earlier files hold of that step and later ones. Throws resource errors as files do.
  EventFile(const std::filesystem::path& folder, std::optional<std::int64_t> first_step);

  // One event; metrics that are not finite are left out. `wall_time` in seconds since 1970.
  void write(std::int64_t step, double wall_time, const Metrics& metrics);
  [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }

 private:
  AppendFile file_;
};

}  // namespace onset
