#include "onset/train/token_logps.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "onset/kernels/gradient.h"
#include "onset/kernels/log_probabilities.h"
#include "onset/kernels/own_kernels.h"
#include "onset/kernels/product_gradients.h"
#include "onset/model/decoder.h"
#include "onset/model/layers.h"
#include "onset/model/placement.h"
#include "onset/train/head_parts.h"

namespace onset {
namespace {

constexpr std::int64_t fewest_rows = 64;

// Calls visit(first, count) for parts of the rows.
template <class Visit>
void for_parts(std::int64_t rows, std::int64_t vocabulary, const Visit& visit) {
  const std::int64_t at_once = std::max(fewest_rows, logits_at_once / vocabulary);
  for (std::int64_t first = 0; first < rows; first += at_once) {
    visit(first, std::min(at_once, rows - first));
  }
}

// Of targets [n, 1]; leaves in `logits` [n, V] what their sum, weighted by -factors [n], has as
// gradient.
LogProbabilities take_logps(at::Tensor& logits, const at::Tensor& targets, double temperature,
                            const at::Tensor& factors) {
  if (temperature != 1.0) logits.div_(temperature);
  return take_log_probabilities(logits, targets, factors.div(temperature));
}

// The head of a model in float32 or bfloat16 on the CPU, without adapter, bias or cap: its
// gradients by our own products, nothing of the logits kept.
class PlainHead {
 public:
  PlainHead(const Decoder& decoder, at::Tensor targets, double temperature)
      : head_(decoder.weights().head),
        vocabulary_(decoder.config().vocabulary),
        type_(decoder.compute() == Compute::bf16 ? ProductType::bf16 : ProductType::f32),
        targets_(std::move(targets)),
        temperature_(temperature) {}

  [[nodiscard]] static bool suits(const Decoder& decoder, const at::Tensor& hidden) {
    const Linear& head = decoder.weights().head;
    return suits_own_kernels(hidden) && decoder.compute() != Compute::f64 && !head.adapter() &&
           !head.bias().defined() && decoder.config().logit_softcap == 0;
  }

  // Of normed hidden states [n, D].
  [[nodiscard]] TokenLogps logps(const at::Tensor& normed, bool equal_gradients) const {
    const bool trained = records_gradient(head_.parameter());
    const auto correct = std::make_shared<std::int64_t>(0);
    // What the values' sum has as gradients; weighted in the backward pass.
    const auto unit = std::make_shared<Gradients>();
    const bool ahead = c10::GradMode::is_enabled() && (!trained || equal_gradients);
    std::vector<at::Tensor> inputs{normed};
    if (trained) inputs.push_back(head_.parameter());
    const at::Tensor values = with_gradient(
        inputs, {normed},
        {.forward = [&] { return forward(normed, correct.get(), ahead, trained, *unit); },
         .backward =
             [self = *this, trained, ahead, unit](const GradientCall& call) {
               const at::Tensor& weights = call.output_gradient;
               const bool scales = ahead && (!trained || all_equal(weights));
               Gradients found = scales ? self.scaled(*unit, weights)
                                        : self.backward(call.saved.front(), weights, trained);
               std::vector<at::Tensor> gradients{found.normed};
               if (trained) gradients.push_back(found.head);
               return gradients;
             }});
    return {.values = values, .correct = *correct};
  }

 private:
  struct Gradients {
    at::Tensor normed;  // [n, D]
    at::Tensor head;    // [V, D]; undefined where the head is not trained
  };

  static bool all_equal(const at::Tensor& weights) {
    return weights.eq(weights[0]).all().item<bool>();
  }

  [[nodiscard]] InputGradients input_gradients() const { return {head_.multiplied(), type_}; }

  void add_gradients(const at::Tensor& dlogits, const at::Tensor& rows, const InputGradients& back,
                     std::int64_t first, bool trained, Gradients& sums) const {
    sums.normed.narrow(0, first, rows.size(0)).copy_(back(dlogits));
    if (!trained) return;
    if (sums.head.defined()) {
      add_weight_gradient(dlogits, rows, type_, sums.head);
    } else {
      sums.head = weight_gradient(dlogits, rows, type_);
    }
  }

  at::Tensor forward(const at::Tensor& normed, std::int64_t* correct, bool ahead, bool trained,
                     Gradients& unit) const {
    at::Tensor values = at::empty({normed.size(0)}, normed.options());
    std::optional<InputGradients> back;
    if (ahead) {
      back = input_gradients();
      unit.normed = at::empty_like(normed);
    }
    for_parts(normed.size(0), vocabulary_, [&](std::int64_t first, std::int64_t count) {
      const at::Tensor rows = normed.narrow(0, first, count);
      at::Tensor logits = head_(rows);
      const LogProbabilities found = take_logps(logits, targets_.narrow(0, first, count),
                                                temperature_, at::full({count}, -1.0F));
      values.narrow(0, first, count).copy_(found.values);
      *correct += found.correct;
      if (back) add_gradients(logits, rows, *back, first, trained, unit);
    });
    return values;
  }

  static Gradients scaled(Gradients& unit, const at::Tensor& weights) {
    if (unit.head.defined()) unit.head.mul_(weights[0]);
    return {.normed = unit.normed.mul(weights.unsqueeze(1)), .head = std::move(unit.head)};
  }

  [[nodiscard]] Gradients backward(const at::Tensor& normed, const at::Tensor& weights,
                                   bool trained) const {
    Gradients sums{.normed = at::empty_like(normed), .head = {}};
    const InputGradients back = input_gradients();
    for_parts(normed.size(0), vocabulary_, [&](std::int64_t first, std::int64_t count) {
      const at::Tensor rows = normed.narrow(0, first, count);
      at::Tensor logits = head_(rows);
      static_cast<void>(take_logps(logits, targets_.narrow(0, first, count), temperature_,
                                   weights.narrow(0, first, count).neg()));
      add_gradients(logits, rows, back, first, trained, sums);
    });
    return sums;
  }

  Linear head_;
  std::int64_t vocabulary_;
  ProductType type_;
  at::Tensor targets_;  // [n, 1]
  double temperature_;
};

// Any head: parts of the rows, each computed again in the backward pass.
TokenLogps recomputed_logps(const Decoder& decoder, const at::Tensor& chosen,
                            const at::Tensor& targets, double temperature) {
  const auto correct = std::make_shared<std::int64_t>(0);
  std::vector<at::Tensor> parts;
  for_parts(chosen.size(0), decoder.config().vocabulary,
            [&](std::int64_t first, std::int64_t count) {
              const auto logps = [&decoder, own = targets.narrow(0, first, count), temperature,
                                  correct](const at::Tensor& input) {
                at::Tensor logits = decoder.logits_of(input);
                // The first of the two computations runs without gradients.
                if (!c10::GradMode::is_enabled()) {
                  *correct += logits.argmax(1, true).eq(own).sum().item<std::int64_t>();
                }
                if (temperature != 1.0) logits = logits.div(temperature);
                return at::log_softmax(logits, -1).gather(1, own).squeeze(1);
              };
              parts.push_back(recomputed(chosen.narrow(0, first, count), logps));
            });
  return {.values = parts.size() == 1 ? parts.front() : at::cat(parts), .correct = *correct};
}

}  // namespace

TokenLogps token_logps(const Decoder& decoder, const at::Tensor& hidden, const ScoredRows& scored,
                       const HeadOptions& options) {
  if (scored.rows.size() != scored.targets.size() || !(options.temperature > 0)) {
    throw std::logic_error("token_logps: rows and targets differ in number, or no temperature");
  }
  if (scored.rows.empty()) return {.values = hidden.sum() * 0.0 + at::zeros({0}, hidden.options())};
  const at::Tensor chosen = hidden.index_select(0, indices(scored.rows, hidden));  // [n, D]
  const at::Tensor targets = indices(scored.targets, hidden).unsqueeze(1);
  if (!PlainHead::suits(decoder, hidden)) {
    return recomputed_logps(decoder, chosen, targets, options.temperature);
  }
  const at::Tensor normed =
      rms_norm(chosen, decoder.weights().final_norm, decoder.config().norm_eps);
  return PlainHead(decoder, targets, options.temperature).logps(normed, options.equal_gradients);
}

}  // namespace onset
