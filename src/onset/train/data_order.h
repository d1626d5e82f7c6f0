// The order in which a run goes through its data: by the seed and the epoch alone, so that it is
// the same on any number of ranks and goes on where it was. Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace onset {

// The numbers 0 to size - 1 in the order of that epoch: as they are without a seed, else shuffled
// (Fisher-Yates, draws from a generator of the seed and the epoch).
[[nodiscard]] std::vector<std::int64_t> epoch_order(std::int64_t size,
                                                    std::optional<std::uint64_t> seed,
                                                    std::int64_t epoch);

// What a checkpoint keeps of it.
struct DataPosition {
  std::int64_t epoch = 0;  // from 0
  std::int64_t index = 0;  // in the epoch's order
  bool operator==(const DataPosition&) const = default;
};

class DataCursor {
 public:
  // size >= 1. Throws an input error for a position that such data do not have.
  DataCursor(std::int64_t size, std::optional<std::uint64_t> seed, DataPosition start = {});

  // The next `count` (>= 1) numbers; at the end of an epoch fewer, and never none: the last step of
  // an epoch is as large as what is left, and no example comes twice in one.
  [[nodiscard]] std::vector<std::int64_t> take(std::int64_t count);
  // Of what take() gives next.
  [[nodiscard]] DataPosition position() const { return position_; }
  // Epochs done, with the share of the one that runs.
  [[nodiscard]] double epochs() const;

 private:
  std::int64_t size_;
  std::optional<std::uint64_t> seed_;
  DataPosition position_;
  std::vector<std::int64_t> order_;
};

// Whether a prompt is held out for evaluation, one in `parts` of them: by a hash of its text (or
// ids), so that equal prompts are on one side whatever the order of the data. parts >= 2.
[[nodiscard]] bool is_held_out(std::string_view prompt, std::int64_t parts);

}  // namespace onset
