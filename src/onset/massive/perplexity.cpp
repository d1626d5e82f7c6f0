#include "onset/massive/perplexity.h"

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

// Logits of a large vocabulary are by far the largest tensor of a pass.
constexpr std::int64_t rows_with_logits = 512;
// Rows whose log-normalisers are computed at once.
constexpr std::int64_t rows_of_normalisers = 64;

struct Window {
  std::vector<std::int64_t> ids;  // as given to the model
  std::int64_t first_scored = 0;  // index into ids; all from there on are scored
};

std::vector<Window> cut(std::span<const std::int64_t> ids, const WindowOptions& options) {
  const std::int64_t prefix = options.bos ? 1 : 0;
  const std::int64_t room = options.window - prefix;
  const std::int64_t stride = options.stride == 0 ? room : options.stride;
  if (room < 1 || options.window < 2 || stride < 1 || stride > room) {
    throw usage_error(str_cat("windows of ", options.window, " tokens with a stride of ",
                              options.stride, " make no sense"),
                      "a window has 2 tokens or more, and a stride of 1 to its own length");
  }
  const auto count = static_cast<std::int64_t>(ids.size());
  std::vector<Window> windows;
  std::int64_t scored = 0;  // tokens of the text that are done
  for (std::int64_t begin = 0; scored < count; begin += stride) {
    const std::int64_t end = std::min(begin + room, count);
    Window window;
    if (options.bos) window.ids.push_back(*options.bos);
    window.ids.insert(window.ids.end(), ids.begin() + begin, ids.begin() + end);
    window.first_scored = std::max<std::int64_t>(scored - begin + prefix, 1);
    scored = end;
    windows.push_back(std::move(window));
  }
  return windows;
}

// The sum of -log p(ids[i]) over i in [first, ids.size()), from logits [T, V].
double negative_log_likelihood(const at::Tensor& logits, const Window& window) {
  double sum = 0;
  const auto count = static_cast<std::int64_t>(window.ids.size());
  for (std::int64_t begin = window.first_scored; begin < count; begin += rows_of_normalisers) {
    const std::int64_t rows = std::min(rows_of_normalisers, count - begin);
    const at::Tensor predicted = logits.narrow(0, begin - 1, rows);
    const std::vector<std::int64_t> targets(window.ids.begin() + begin,
                                            window.ids.begin() + begin + rows);
    const at::Tensor chosen =
        predicted.gather(1, at::tensor(targets, at::kLong).unsqueeze(1)).squeeze(1);
    sum += (at::logsumexp(predicted, 1) - chosen).to(at::kDouble).sum().item<double>();
  }
  return sum;
}

}  // namespace

double TextScore::perplexity() const {
  if (scored_tokens == 0) return std::numeric_limits<double>::quiet_NaN();
  return std::exp(nll / static_cast<double>(scored_tokens));
}

TextScore score_text(const Model& model, std::span<const std::int64_t> ids,
                     const WindowOptions& options, const Hooks* hooks, const Log& log) {
  const std::vector<Window> windows = cut(ids, options);
  std::vector<std::int64_t> lengths;
  TextScore score;
  for (const Window& window : windows) {
    const auto length = static_cast<std::int64_t>(window.ids.size());
    lengths.push_back(length);
    score.scored_tokens += length - std::min(window.first_scored, length);
  }
  if (score.scored_tokens == 0) {
    throw usage_error("the text is too short to be scored", "give two tokens or more");
  }
  const c10::InferenceMode inference;
  for (const PromptRange& range : divide(lengths, rows_with_logits)) {
    std::vector<SequenceInput> batch;
    for (std::size_t w = range.begin; w < range.end; ++w) {
      batch.push_back({.ids = windows[w].ids, .cache = nullptr});
    }
    const ForwardResult result = model.decoder().forward(batch, LogitRows::all, hooks);
    for (std::size_t w = range.begin; w < range.end; ++w) {
      const SequenceRows& rows = result.sequences[w - range.begin];
      score.nll_per_window.push_back(
          negative_log_likelihood(result.logits.narrow(0, rows.row, rows.count), windows[w]));
      score.nll += score.nll_per_window.back();
    }
    log.step("windows", static_cast<std::int64_t>(range.end),
             static_cast<std::int64_t>(windows.size()));
  }
  score.windows = static_cast<std::int64_t>(windows.size());
  return score;
}

}  // namespace onset
