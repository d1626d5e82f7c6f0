#include "onset/train/packing.h"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>

#include "onset/base/error.h"

namespace onset {
namespace {

std::int64_t length_of(const SftExample& example) {
  return static_cast<std::int64_t>(example.ids.size());
}

// Tokens [from, to) as a document of their own.
SftExample piece_of(const SftExample& example, std::int64_t from, std::int64_t to) {
  SftExample piece;
  piece.ids.assign(example.ids.begin() + from, example.ids.begin() + to);
  piece.trained.assign(example.trained.begin() + from, example.trained.begin() + to);
  if (!piece.trained.empty()) piece.trained.front() = 0;  // nothing stands before it any more
  return piece;
}

bool is_trained(const SftExample& example) {
  return std::find(example.trained.begin(), example.trained.end(), 1) != example.trained.end();
}

std::vector<SftExample> fitted(std::vector<SftExample> examples, std::int64_t max_length,
                               bool splits, Packed& packed) {
  std::vector<SftExample> result;
  const auto add = [&](SftExample piece) {
    if (is_trained(piece)) {
      result.push_back(std::move(piece));
    } else {
      packed.tokens_cut += length_of(piece);
    }
  };
  for (auto& example : examples) {
    const std::int64_t length = length_of(example);
    if (length <= max_length) {
      add(std::move(example));
      continue;
    }
    const std::int64_t end = splits ? length : max_length;
    packed.tokens_cut += length - end;
    for (std::int64_t from = 0; from < end; from += max_length) {
      packed.pieces += from > 0 ? 1 : 0;
      add(piece_of(example, from, std::min(from + max_length, end)));
    }
  }
  return result;
}

void pack_best_fit(std::vector<SftExample> examples, std::int64_t max_length, Packed& packed) {
  std::vector<std::size_t> order(examples.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return length_of(examples[a]) > length_of(examples[b]);
  });
  // Rows by the room that is left in them; of those with the same room the one that came to it
  // first.
  std::map<std::int64_t, std::deque<std::size_t>> rows_by_room;
  for (const std::size_t i : order) {
    const std::int64_t length = length_of(examples[i]);
    const auto fit = rows_by_room.lower_bound(length);
    std::int64_t room = max_length;
    std::size_t row = packed.rows.size();
    if (fit == rows_by_room.end()) {
      packed.rows.emplace_back();
    } else {
      room = fit->first;
      row = fit->second.front();
      fit->second.pop_front();
      if (fit->second.empty()) rows_by_room.erase(fit);
    }
    packed.rows[row].push_back(std::move(examples[i]));
    if (room > length) rows_by_room[room - length].push_back(row);
  }
}

void pack_wrapped(const std::vector<SftExample>& examples, std::int64_t max_length,
                  Packed& packed) {
  std::int64_t room = 0;
  for (const auto& example : examples) {
    for (std::int64_t from = 0; from < length_of(example);) {
      if (room == 0) {
        if (packed.rows.empty() || !packed.rows.back().empty()) packed.rows.emplace_back();
        room = max_length;
      }
      const std::int64_t to = std::min(from + room, length_of(example));
      room -= to - from;
      auto piece = piece_of(example, from, to);
      if (is_trained(piece)) {
        packed.pieces += from > 0 ? 1 : 0;
        packed.rows.back().push_back(std::move(piece));
      } else {
        packed.tokens_cut += to - from;
      }
      from = to;
    }
  }
  if (!packed.rows.empty() && packed.rows.back().empty()) packed.rows.pop_back();
}

}  // namespace

double Packed::filled(std::int64_t max_length) const {
  if (rows.empty()) return 0;
  return static_cast<double>(tokens) /
         (static_cast<double>(rows.size()) * static_cast<double>(max_length));
}

Packed pack(std::vector<SftExample> examples, std::int64_t max_length, PackingStrategy strategy) {
  if (max_length < 2) {
    throw usage_error(str_cat("packing into rows of ", max_length, " tokens"),
                      "max_length has to be 2 or more");
  }
  Packed packed;
  if (strategy == PackingStrategy::wrapped) {
    pack_wrapped(examples, max_length, packed);
  } else {
    pack_best_fit(
        fitted(std::move(examples), max_length, strategy == PackingStrategy::bfd_split, packed),
        max_length, packed);
  }
  for (const auto& row : packed.rows) {
    for (const auto& document : row) packed.tokens += length_of(document);
  }
  return packed;
}

std::vector<PackedRow> rows_of(std::vector<SftExample> examples) {
  std::vector<PackedRow> rows;
  rows.reserve(examples.size());
  for (SftExample& example : examples) {
    rows.emplace_back();
    rows.back().push_back(std::move(example));
  }
  return rows;
}

}  // namespace onset
