#include "onset/massive/rigidity.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "onset/base/error.h"
#include "onset/model/batches.h"
#include "onset/model/decoder.h"

namespace onset {
namespace {

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

std::vector<SiteKind> compared_sites(const ModelConfig& config) {
  std::vector<SiteKind> sites{SiteKind::resid_post};
  if (config.pre_norms) sites.push_back(SiteKind::attn_norm);
  sites.push_back(SiteKind::k_pre);
  sites.push_back(SiteKind::v);
  return sites;
}

// The states of one token of each prompt at one site: [P][L][D].
using TokenStates = std::vector<std::vector<std::vector<float>>>;

// What the passes leave behind: of each site the states of the token and of the baseline.
class StateKeeper {
 public:
  StateKeeper(const std::vector<RigidityPrompt>& prompts, std::vector<SiteKind> sites)
      : prompts_(prompts),
        sites_(std::move(sites)),
        tokens_(sites_.size(), TokenStates(prompts.size())),
        baselines_(sites_.size(), TokenStates(prompts.size())) {}

  void begin(std::size_t first_prompt) { first_prompt_ = first_prompt; }
  void see(const SiteContext& context, const at::Tensor& state) {
    const auto found = std::find(sites_.begin(), sites_.end(), context.site.kind);
    const auto site = static_cast<std::size_t>(found - sites_.begin());
    for (std::size_t s = 0; s < context.sequences.size(); ++s) {
      const std::size_t p = first_prompt_ + s;
      const std::int64_t row = context.sequences[s].row;
      tokens_[site][p].push_back(vector_of(context, state[row + prompts_[p].token], p));
      if (!prompts_[p].baseline) continue;
      baselines_[site][p].push_back(vector_of(context, state[row + *prompts_[p].baseline], p));
    }
  }

  [[nodiscard]] const std::vector<SiteKind>& sites() const { return sites_; }
  [[nodiscard]] const TokenStates& tokens(std::size_t site) const { return tokens_[site]; }
  // Of the prompts that have a baseline.
  [[nodiscard]] TokenStates baselines(std::size_t site) const {
    TokenStates states;
    for (const auto& of_prompt : baselines_[site]) {
      if (!of_prompt.empty()) states.push_back(of_prompt);
    }
    return states;
  }

 private:
  static std::vector<float> vector_of(const SiteContext& context, const at::Tensor& row,
                                      std::size_t prompt) {
    const at::Tensor flat = row.reshape({-1}).to(at::kFloat).contiguous();
    std::vector<float> values(flat.const_data_ptr<float>(),
                              flat.const_data_ptr<float>() + flat.numel());
    const bool finite =
        std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
    if (!finite) {
      throw input_error(
          str_cat("prompt ", prompt, ": ", site_name(context.site), " holds NaN or infinity"),
          "`onset inspect MODEL --verify` names the tensors that do");
    }
    return values;
  }

  const std::vector<RigidityPrompt>& prompts_;
  std::vector<SiteKind> sites_;
  std::size_t first_prompt_ = 0;
  std::vector<TokenStates> tokens_;
  std::vector<TokenStates> baselines_;
};

// n vectors as the rows of a float64 matrix.
at::Tensor matrix_of(std::span<const std::vector<float>> vectors) {
  std::vector<at::Tensor> rows;
  for (const auto& vector : vectors) rows.push_back(at::tensor(vector, at::kDouble));
  return at::stack(rows);
}

void add_prompt_pairs(StateRigidity& result) {
  const CosineMatrix& cosines = result.prompts.back();
  double sum = 0;
  double least = std::numeric_limits<double>::infinity();
  std::int64_t pairs = 0;
  for (std::size_t p = 0; p < cosines.size(); ++p) {
    for (std::size_t q = p + 1; q < cosines.size(); ++q) {
      if (std::isnan(cosines[p][q])) continue;
      sum += cosines[p][q];
      least = std::min(least, cosines[p][q]);
      ++pairs;
    }
  }
  result.mean_prompts.push_back(pairs > 0 ? sum / static_cast<double>(pairs) : nothing);
  result.min_prompts.push_back(pairs > 0 ? least : nothing);
}

CosineMatrix mean_of(const std::vector<CosineMatrix>& matrices) {
  const std::size_t size = matrices.front().size();
  CosineMatrix mean(size, std::vector<double>(size, 0));
  for (const CosineMatrix& matrix : matrices) {
    for (std::size_t i = 0; i < size; ++i) {
      for (std::size_t j = 0; j < size; ++j) {
        mean[i][j] += matrix[i][j] / static_cast<double>(matrices.size());
      }
    }
  }
  return mean;
}

StateRigidity compare(const TokenStates& states) {
  StateRigidity result;
  for (const auto& of_prompt : states) result.layers.push_back(cosine_matrix(of_prompt));
  result.mean_layers = mean_of(result.layers);
  for (std::size_t l = 0; l < states.front().size(); ++l) {
    std::vector<std::vector<float>> at_layer;
    for (const auto& of_prompt : states) at_layer.push_back(of_prompt[l]);
    result.prompts.push_back(cosine_matrix(at_layer));
    add_prompt_pairs(result);
    result.effective_rank.push_back(at_layer.size() > 1 ? effective_rank(at_layer) : nothing);
  }
  return result;
}

void check(const std::vector<RigidityPrompt>& prompts) {
  if (prompts.empty()) throw usage_error("rigidity needs at least one prompt");
  if (prompts.size() > most_rigidity_prompts) {
    throw usage_error(str_cat("rigidity compares every prompt with every other; ", prompts.size(),
                              " are more than ", most_rigidity_prompts),
                      str_cat("give at most ", most_rigidity_prompts, " prompts"));
  }
  for (std::size_t p = 0; p < prompts.size(); ++p) {
    const auto length = static_cast<std::int64_t>(prompts[p].ids.size());
    for (const std::int64_t position : {prompts[p].token, prompts[p].baseline.value_or(0)}) {
      if (position >= 0 && position < length) continue;
      throw usage_error(str_cat("prompt ", p, " has no token ", position));
    }
  }
}

StateKeeper run_passes(const Model& model, const std::vector<RigidityPrompt>& prompts,
                       const Log& log, const Hooks* interventions) {
  const std::int64_t layers = model.config().layer_count();
  StateKeeper keeper(prompts, compared_sites(model.config()));
  SiteSet sites(layers);
  for (const SiteKind kind : keeper.sites()) sites.add_all_layers(kind);
  std::vector<std::int64_t> lengths;
  lengths.reserve(prompts.size());
  for (const auto& prompt : prompts)
    lengths.push_back(static_cast<std::int64_t>(prompt.ids.size()));
  const auto ranges = divide(lengths);
  std::int64_t done = 0;
  Hooks hooks = edited_as(interventions, layers);
  hooks.observe(sites, [&](const SiteContext& context, const at::Tensor& tensor) {
    keeper.see(context, tensor);
    if (context.site.kind == SiteKind::resid_post) {
      log.step("layers", ++done, layers * static_cast<std::int64_t>(ranges.size()));
    }
  });
  for (const PromptRange& range : ranges) {
    keeper.begin(range.begin);
    std::vector<SequenceInput> batch;
    for (std::size_t p = range.begin; p < range.end; ++p) batch.push_back({.ids = prompts[p].ids});
    static_cast<void>(model.decoder().forward(batch, LogitRows::none, &hooks));
  }
  return keeper;
}

}  // namespace

CosineMatrix cosine_matrix(std::span<const std::vector<float>> vectors) {
  const at::Tensor x = matrix_of(vectors);
  const at::Tensor unit = x / x.norm(2, {1}, true);
  const at::Tensor cosines = unit.matmul(unit.t()).contiguous();
  const auto size = static_cast<std::int64_t>(vectors.size());
  CosineMatrix result;
  for (std::int64_t i = 0; i < size; ++i) {
    const auto* row = cosines.const_data_ptr<double>() + i * size;
    result.emplace_back(row, row + size);
  }
  return result;
}

double effective_rank(std::span<const std::vector<float>> vectors) {
  const at::Tensor singular = at::linalg_svdvals(matrix_of(vectors));
  const auto sum = singular.sum().item<double>();
  if (!(sum > 0)) return nothing;
  const at::Tensor share = singular / sum;
  return std::exp(-at::xlogy(share, share).sum().item<double>());
}

RigidityResult measure_rigidity(const Model& model, const std::vector<RigidityPrompt>& prompts,
                                const Log& log, const Hooks* interventions) {
  check(prompts);
  const c10::InferenceMode inference;
  const StateKeeper keeper = run_passes(model, prompts, log, interventions);
  RigidityResult result{.prompts = prompts, .sites = {}};
  for (std::size_t s = 0; s < keeper.sites().size(); ++s) {
    SiteRigidity& site = result.sites.emplace_back();
    site.site = keeper.sites()[s];
    site.token = compare(keeper.tokens(s));
    const TokenStates baselines = keeper.baselines(s);
    if (!baselines.empty()) site.baseline = compare(baselines);
  }
  return result;
}

}  // namespace onset
