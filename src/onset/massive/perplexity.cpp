#include "onset/massive/perplexity.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "onset/base/error.h"
#include "onset/model/batches.h"
#include "onset/model/decoder.h"
#include "onset/model/placement.h"

namespace onset {
namespace {

// Logits of a large vocabulary are by far the largest tensor of a pass.
constexpr std::int64_t rows_with_logits = 512;
// Rows whose log-normalisers are computed at once.
constexpr std::int64_t rows_of_normalisers = 64;

// The sum of -log p(ids[i]) over i in [first, ids.size()), from logits [T, V].
double negative_log_likelihood(const at::Tensor& logits, const TextWindow& window) {
  double sum = 0;
  const auto count = static_cast<std::int64_t>(window.ids.size());
  for (std::int64_t begin = window.first_scored; begin < count; begin += rows_of_normalisers) {
    const std::int64_t rows = std::min(rows_of_normalisers, count - begin);
    const at::Tensor predicted = logits.narrow(0, begin - 1, rows);
    const std::vector<std::int64_t> targets(window.ids.begin() + begin,
                                            window.ids.begin() + begin + rows);
    const at::Tensor chosen = predicted.gather(1, indices(targets, logits).unsqueeze(1)).squeeze(1);
    sum += (at::logsumexp(predicted, 1) - chosen).to(at::kDouble).sum().item<double>();
  }
  return sum;
}

}  // namespace

double TextScore::perplexity() const {
  if (scored_tokens == 0) return std::numeric_limits<double>::quiet_NaN();
  return std::exp(nll / static_cast<double>(scored_tokens));
}

std::vector<TextWindow> text_windows(std::span<const std::int64_t> ids,
                                     const WindowOptions& options) {
  const std::int64_t prefix = options.bos ? 1 : 0;
  const std::int64_t room = options.window - prefix;
  const std::int64_t stride = options.stride == 0 ? room : options.stride;
  if (room < 1 || options.window < 2 || stride < 1 || stride > room) {
    throw usage_error(str_cat("windows of ", options.window, " tokens with a stride of ",
                              options.stride, " make no sense"),
                      "a window has 2 tokens or more, and a stride of 1 to its own length");
  }
  const auto count = static_cast<std::int64_t>(ids.size());
  std::vector<TextWindow> windows;
  std::int64_t scored = 0;  // tokens of the text that are done
  for (std::int64_t begin = 0; scored < count; begin += stride) {
    const std::int64_t end = std::min(begin + room, count);
    TextWindow window;
    if (options.bos) window.ids.push_back(*options.bos);
    window.ids.insert(window.ids.end(), ids.begin() + begin, ids.begin() + end);
    window.first_scored = std::max<std::int64_t>(scored - begin + prefix, 1);
    scored = end;
    windows.push_back(std::move(window));
  }
  if (std::all_of(windows.begin(), windows.end(),
                  [](const TextWindow& window) { return window.scored_tokens() == 0; })) {
    throw usage_error("the text is too short to be scored", "give two tokens or more");
  }
  return windows;
}

std::vector<double> score_windows(const Model& model, std::span<const TextWindow> windows,
                                  const Hooks* hooks, const Log& log) {
  std::vector<std::int64_t> lengths;
  for (const TextWindow& window : windows) {
    lengths.push_back(static_cast<std::int64_t>(window.ids.size()));
  }
  const c10::InferenceMode inference;
  std::vector<double> nll;
  for (const PromptRange& range : divide(lengths, rows_with_logits)) {
    std::vector<SequenceInput> batch;
    for (std::size_t w = range.begin; w < range.end; ++w) {
      batch.push_back({.ids = windows[w].ids, .cache = nullptr});
    }
    const ForwardResult result = model.decoder().forward(batch, LogitRows::all, hooks);
    for (std::size_t w = range.begin; w < range.end; ++w) {
      const SequenceRows& rows = result.sequences[w - range.begin];
      nll.push_back(
          negative_log_likelihood(result.logits.narrow(0, rows.row, rows.count), windows[w]));
    }
    log.step("windows", static_cast<std::int64_t>(range.end),
             static_cast<std::int64_t>(windows.size()));
  }
  return nll;
}

TextScore score_text(const Model& model, std::span<const std::int64_t> ids,
                     const WindowOptions& options, const Hooks* hooks, const Log& log) {
  const std::vector<TextWindow> windows = text_windows(ids, options);
  TextScore score;
  score.windows = static_cast<std::int64_t>(windows.size());
  for (const TextWindow& window : windows) score.scored_tokens += window.scored_tokens();
  score.nll_per_window = score_windows(model, windows, hooks, log);
  for (const double nll : score.nll_per_window) score.nll += nll;
  return score;
}

}  // namespace onset
