#include "onset/model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace onset {
namespace {

constexpr double two_pi = 2.0 * std::numbers::pi;

// Llama 3.1: long wavelengths are stretched by the factor, short ones kept, those between the two
// bands interpolated.
double llama3_frequency(const RopeConfig& config, double inverse) {
  const auto original = static_cast<double>(config.original_context);
  const double wavelength = two_pi / inverse;
  if (wavelength < original / config.high_freq_factor) return inverse;
  if (wavelength > original / config.low_freq_factor) return inverse / config.factor;
  const double smooth = (original / wavelength - config.low_freq_factor) /
                        (config.high_freq_factor - config.low_freq_factor);
  return (1.0 - smooth) * inverse / config.factor + smooth * inverse;
}

// Peng et al. 2309.00071, section 3.2: dims that turn more than beta_fast times over the original
// context keep their frequency, those that turn less than beta_slow times are stretched.
struct YarnRamp {
  double low;
  double high;

  explicit YarnRamp(const RopeConfig& config)
      : low(dim_of(config, config.beta_fast)), high(dim_of(config, config.beta_slow)) {
    if (config.truncate) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, static_cast<double>(config.rotary_dim - 1));
    if (low == high) high += 0.001;
  }

  // The dim whose wavelength fits `turns` times into the original context.
  static double dim_of(const RopeConfig& config, double turns) {
    return static_cast<double>(config.rotary_dim) *
           std::log(static_cast<double>(config.original_context) / (turns * two_pi)) /
           (2.0 * std::log(config.theta));
  }

  [[nodiscard]] double stretched_share(double dim) const {
    return std::clamp((dim - low) / (high - low), 0.0, 1.0);
  }
};

double attention_factor(const RopeConfig& config) {
  if (config.attention_factor) return *config.attention_factor;
  if (config.factor <= 1.0) return 1.0;
  if (config.kind == RopeKind::yarn) {
    const auto stretch = [&](double scale) { return 0.1 * scale * std::log(config.factor) + 1.0; };
    const bool both = config.mscale > 0 && config.mscale_all_dim > 0;
    return both ? stretch(config.mscale) / stretch(config.mscale_all_dim) : stretch(1.0);
  }
  return std::sqrt(1.0 + std::log(config.factor) /
                             std::log(static_cast<double>(config.original_context)));
}

bool is_long(const RopeConfig& config, std::int64_t length) {
  return config.kind == RopeKind::longrope && length > config.original_context;
}

}  // namespace

bool rope_changes_between(const RopeConfig& config, std::int64_t shorter, std::int64_t longer) {
  return is_long(config, shorter) != is_long(config, longer);
}

RopeFrequencies rope_frequencies(const RopeConfig& config, std::int64_t length) {
  RopeFrequencies result;
  const std::int64_t half = config.rotary_dim / 2;
  result.inverse.reserve(static_cast<std::size_t>(half));
  const YarnRamp ramp(config);
  for (std::int64_t i = 0; i < half; ++i) {
    double inverse = std::pow(
        config.theta, -2.0 * static_cast<double>(i) / static_cast<double>(config.rotary_dim));
    if (config.kind == RopeKind::linear) inverse /= config.factor;
    if (config.kind == RopeKind::llama3) inverse = llama3_frequency(config, inverse);
    if (config.kind == RopeKind::yarn) {
      const double share = ramp.stretched_share(static_cast<double>(i));
      inverse = inverse / config.factor * share + inverse * (1.0 - share);
    }
    if (config.kind == RopeKind::longrope) {
      const std::vector<double>& factors =
          is_long(config, length) ? config.long_factors : config.short_factors;
      inverse /= factors[static_cast<std::size_t>(i)];
    }
    if (!config.frequency_divisors.empty()) {
      inverse /= config.frequency_divisors[static_cast<std::size_t>(i)];
    }
    result.inverse.push_back(static_cast<float>(inverse));
  }
  if (config.kind == RopeKind::yarn || config.kind == RopeKind::longrope) {
    result.scale = attention_factor(config);
  }
  return result;
}

}  // namespace onset
