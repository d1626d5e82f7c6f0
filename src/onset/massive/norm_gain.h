// What an RMSNorm does to the massive token beside the others: x, rms, x_hat = x / rms, the gain w
// and the product n = w * x_hat, each apart (docs/explain.md). Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "onset/base/log.h"

namespace onset {

class Hooks;
class Model;

// How the energy p_d = n_d^2 / sum n^2 of one vector is spread over its dims.
struct Concentration {
  // Shares of the energy in the largest 1, 4 and 16 dims.
  double top1 = 0;
  double top4 = 0;
  double top16 = 0;
  // In the 1, 4 and 16 dims of largest |w|.
  double gain_top1 = 0;
  double gain_top4 = 0;
  double gain_top16 = 0;
  double participation = 0;  // 1 / sum p^2: about how many dims carry it
  // KL(p || mean p of the other tokens) in nats; NaN where there is no other token.
  double divergence = 0;
};

// One token, or the medians over many.
struct NormReading {
  double rms = 0;               // sqrt(mean x^2 + eps)
  double amplification = 0;     // |w * x_hat|_2 / |x_hat|_2
  double input_norm = 0;        // |x|_2
  double output_norm = 0;       // |w * x_hat|_2
  Concentration before;         // of x_hat (the gain's effect left out)
  Concentration after;          // of w * x_hat
  double rank_correlation = 0;  // Spearman's, of x_hat^2 with |w| over the dims
};

// One dim of the massive token.
struct NormDim {
  std::int64_t dim = 0;
  double x = 0;
  double normalised = 0;  // x_hat
  double gain = 0;
  double product = 0;
  double energy_before = 0;  // share of the energy of x_hat, and of w * x_hat
  double energy_after = 0;
  double others_product = 0;   // median |w * x_hat| of the other tokens
  std::int64_t gain_rank = 0;  // 0: the largest |w|
};

// Shares of the energy in the k largest dims, k = 1, 2, 4, .. D.
struct EnergyCurve {
  std::vector<std::int64_t> dims;
  std::vector<double> before;         // of the massive token, before the gain
  std::vector<double> after;          // and after it
  std::vector<double> others_before;  // medians of the other tokens
  std::vector<double> others_after;
};

struct NormAnalysis {
  std::int64_t layer = 0;
  NormReading token;                  // the massive token of the shown prompt
  std::vector<NormReading> tokens;    // the massive token of each prompt
  std::optional<NormReading> others;  // medians over the other tokens of all prompts
  std::int64_t other_count = 0;
  // token.amplification / others->amplification; NaN without others.
  double relative_amplification = 0;
  std::vector<NormDim> massive_dims;  // the dims that were asked for
  std::vector<NormDim> top_dims;      // the 16 of most energy after the gain
  EnergyCurve curve;
  // [D] of the shown prompt's massive token.
  std::vector<float> x;
  std::vector<float> gain;
  std::vector<float> product;
};

// The gains of one norm, and what they do to the massive token.
struct LayerGains {
  std::int64_t layer = 0;
  // Quantiles of |w| over the dims: 0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.
  std::vector<double> quantiles;
  double mean = 0;                  // of w, signed
  std::vector<double> at_dims;      // w at the dims that were asked for, signed
  std::vector<double> percentiles;  // share of dims with a smaller |w|
  double amplification = 0;         // of the massive token of the shown prompt
  double others_amplification = 0;  // median of the other tokens; NaN without
};

struct GainsByLayer {
  std::vector<LayerGains> attention;  // the norm before attention; empty where there is none
  std::vector<LayerGains> ffn;        // the norm before the FFN; empty where there is none
};

// A prompt and its massive token.
struct MassiveTokenOf {
  std::vector<std::int64_t> ids;
  std::int64_t token = 0;
};

struct NormQuestion {
  std::int64_t layer = 0;
  std::vector<std::int64_t> dims;
  std::vector<MassiveTokenOf> prompts;
  std::size_t shown = 0;  // index into prompts
};

struct NormResult {
  // Empty in families without a norm before the FFN.
  std::optional<NormAnalysis> ffn_norm;
  GainsByLayer gains;
};

// One pass over the prompts, all layers.
[[nodiscard]] NormResult analyse_norms(const Model& model, const NormQuestion& question,
                                       const Log& log = {}, const Hooks* interventions = nullptr);

}  // namespace onset
