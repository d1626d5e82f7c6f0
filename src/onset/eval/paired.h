// Two runs over the same items, compared item by item. Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "onset/eval/bootstrap.h"
#include "onset/eval/mcnemar.h"

namespace onset {

// One item's scores in runs A and B. `weight`: what it counts in the mean, such as its number of
// words where the score is a sum over them; the mean is sum(score) / sum(weight).
struct ScorePair {
  double a = 0;
  double b = 0;
  double weight = 1;
};

struct PairedOptions {
  double alpha = 0.05;
  double power = 0.8;
  std::int64_t resamples = 10'000;  // of the bootstrap, and flips of the sign-flip test
  std::uint64_t seed = 0;
};

enum class PairedTest { mcnemar_exact, sign_flip_exact, sign_flip_sampled };
enum class IntervalMethod { bootstrap_bca, bonett_price };

// Differences are B - A.
struct PairedResult {
  std::int64_t n = 0;
  double a = 0;
  double b = 0;
  double difference = 0;
  bool binary = false;          // every score is 0 or 1 and every weight 1
  std::int64_t wins = 0;        // items with a higher score in B
  std::int64_t losses = 0;      // in A
  std::int64_t both_right = 0;  // binary: 1 in both; the rest is 0 in both

  // Each run's own, by Wilson; binary alone.
  std::optional<Interval> a_interval = std::nullopt;
  std::optional<Interval> b_interval = std::nullopt;

  // Of the difference. Right-or-wrong scores of which fewer than `few_changes` changed take Bonett
  // and Price's: resamples of a handful of changes are no guide to how many there could have been.
  // Nothing for one item with other scores.
  std::optional<Interval> interval = std::nullopt;
  IntervalMethod method = IntervalMethod::bootstrap_bca;
  BootstrapResult bootstrap = {};

  PairedTest test = PairedTest::mcnemar_exact;
  double p = 1;
  std::optional<double> mid_p = std::nullopt;  // of McNemar's test
  std::int64_t flips = 0;                      // of a sign-flip test

  // The smallest difference found with probability `power`; see power.h.
  std::optional<double> detectable = std::nullopt;
};

inline constexpr std::int64_t few_changes = 10;

// Finite scores, weights above 0, at least one pair.
[[nodiscard]] PairedResult compare_paired(std::span<const ScorePair> pairs,
                                          const PairedOptions& options);

}  // namespace onset
