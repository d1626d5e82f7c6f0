// One forward pass over the next tokens of all rows and parts of prompts.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "onset/generate/generator_impl.h"
#include "onset/model/hooks.h"
#include "onset/model/model.h"
#include "onset/model/placement.h"
#include "onset/wemask/mask.h"

namespace onset {
namespace {

// Fewer tokens are not worth waiting for another row that computes them.
constexpr std::int64_t worth_waiting = 16;
// Rows of logits that are held at a time when a prompt is scored.
constexpr std::int64_t scored_rows = 64;

}  // namespace

bool Generator::Impl::step() {
  const c10::InferenceMode inference;
  bool any = deliver();
  any = drop_cancelled() || any;
  any = start_rows() || any;
  const std::vector<Part> parts = plan();
  if (!parts.empty()) {
    any = true;
    run_or_fail(parts);
    remove_done_rows();
  }
  return deliver() || any;
}

std::vector<Generator::Impl::Part> Generator::Impl::plan() {
  std::vector<Part> parts;
  std::int64_t budget = options.prefill_tokens;
  for (const auto& row : rows) {
    if (row->cache.length() > 0 &&
        !same_rope(model.config(), row->cache.rope_length(), row->length())) {
      // It grew past the original context: all its positions turn by other frequencies.
      row->cache = decoder.new_cache();
    }
    if (row->decodes()) {
      parts.push_back({row.get(), 1});
      continue;
    }
    if (budget <= 0 || (row->cache.length() == 0 && !take_prefix(*row))) continue;
    const bool whole = !row->job->shares_states();
    const std::int64_t count = whole ? row->pending() : std::min(row->pending(), budget);
    budget -= count;
    parts.push_back({row.get(), count});
  }
  return parts;
}

// Takes over the states of the longest common beginning that some sequence has. False where it is
// better to wait for a row that is computing a longer one.
bool Generator::Impl::take_prefix(GenerationRow& row) {
  const GenerationJob& job = *row.job;
  if (!job.shares_states() || (job.request.prompt_logprobs && row.generated == 0)) return true;
  const std::span<const std::int64_t> ids(row.ids);
  // The last token is computed in any case, for its logits.
  const std::int64_t most = row.length() - 1;
  PrefixCache::Found best = prefixes.longest(ids, job.mask.get());
  best.length = std::min(best.length, most);
  std::int64_t coming = 0;
  bool is_before = true;
  for (const auto& other : rows) {
    if (other.get() == &row) is_before = false;
    if (other.get() == &row || other->job->mask != job.mask || !other->job->shares_states() ||
        !same_rope(model.config(), other->length(), row.length())) {
      continue;
    }
    const std::int64_t common = std::min(common_prefix(other->ids, ids), most);
    const std::int64_t computed = std::min(common, other->cache.length());
    if (computed > best.length) best = {&other->cache, computed};
    if (is_before && !other->decodes()) coming = std::max(coming, common);
  }
  if (coming >= best.length + worth_waiting) return false;
  if (best.length > 0) {
    row.cache = best.cache->prefix_copy(best.length);
    counts.reused_tokens += best.length;
  }
  return true;
}

// A failure concerns the rows that meet it when they run alone.
void Generator::Impl::run_or_fail(const std::vector<Part>& parts) {
  struct Before {
    std::int64_t length;
    std::size_t scored;
  };
  std::vector<Before> before;
  for (const Part& part : parts) {
    before.push_back({part.row->cache.length(), part.row->job->prompt.size()});
  }
  try {
    run(parts);
    return;
  } catch (...) {
    const GenerationFailure failure = current_generation_failure();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts[i].row->cache.truncate(before[i].length);
      parts[i].row->job->prompt.resize(before[i].scored);
    }
    if (failure.memory) prefixes.clear();
    if (parts.size() == 1) {
      fail(parts.front().row->job, failure);
      return;
    }
  }
  for (const Part& part : parts) {
    if (!part.row->done) run_or_fail({part});
  }
}

void Generator::Impl::run(const std::vector<Part>& parts) {
  std::vector<SequenceInput> batch;
  for (const auto& [row, count] : parts) {
    const auto begin = row->ids.begin() + row->cache.length();
    batch.push_back(
        {.ids = {begin, begin + count}, .cache = &row->cache, .planned_length = row->length()});
  }
  Hooks hooks(model.config().layer_count());
  bool masked = false;
  add_masks(hooks, parts, masked);
  const ForwardResult result = decoder.forward(batch, LogitRows::none, masked ? &hooks : nullptr);
  ++counts.passes;

  std::vector<GenerationRow*> complete;
  std::vector<std::int64_t> last;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& [row, count] = parts[i];
    const SequenceRows& place = result.sequences[i];
    if (row->generated == 0) counts.prompt_tokens += count;
    if (row->generated == 0 && row->job->request.prompt_logprobs) {
      score_prompt(*row, result.hidden.narrow(0, place.row, count), place.position);
    }
    if (row->pending() > 0) continue;
    if (row->generated == 0 && row->job->max_new == 0) {
      finish_without_tokens(*row);
      continue;
    }
    complete.push_back(row);
    last.push_back(place.row + count - 1);
  }
  if (complete.empty()) return;
  const at::Tensor logits =
      decoder.logits_of(result.hidden.index_select(0, indices(last, result.hidden)))
          .to(at::kCPU, at::kFloat)
          .contiguous();  // [rows, V]
  std::vector<Choice> choices;
  for (std::size_t i = 0; i < complete.size(); ++i) {
    const at::Tensor row_logits = logits[static_cast<std::int64_t>(i)];
    const JobPointer& job = complete[i]->job;
    if (complete[i]->generated == 0 && job->request.samples > 1) {
      job->prompt_cache = complete[i]->cache.prefix_copy(complete[i]->cache.length());
      job->prompt_logits = row_logits.clone();
    }
    choices.push_back({complete[i], row_logits.const_data_ptr<float>()});
  }
  for (const GenerationRow* row : complete) {
    if (row->generated == 0 && row->job->request.samples > 1) forking.push_back(row->job);
  }
  choose(choices);
}

// One mask is added once for all its rows, but each row of `official_compat` is a batch of its own.
void Generator::Impl::add_masks(Hooks& hooks, const std::vector<Part>& parts, bool& any) const {
  const auto add = [&](const MaskSpec& spec, std::vector<bool> chosen) {
    any = true;
    add_mask(hooks, spec, model, {},
             [chosen = std::move(chosen)](std::size_t sequence) { return chosen[sequence]; });
  };
  std::map<const MaskSpec*, std::vector<bool>> shared;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& [row, count] = parts[i];
    const MaskSpec* spec = row->job->mask.get();
    if (spec == nullptr || !may_mask(*spec, row->cache.length(), count)) continue;
    std::vector<bool> alone;
    std::vector<bool>& chosen = spec->official_compat ? alone : shared[spec];
    chosen.resize(parts.size());
    chosen[i] = true;
    if (spec->official_compat) add(*spec, std::move(alone));
  }
  for (auto& [spec, chosen] : shared) add(*spec, std::move(chosen));
}

// `hidden`: of the prompt's tokens from `position` on; each gives the probability of the next.
void Generator::Impl::score_prompt(GenerationRow& row, const at::Tensor& hidden,
                                   std::int64_t position) {
  GenerationJob& job = *row.job;
  const auto vocabulary = static_cast<std::size_t>(model.config().vocabulary);
  if (position == 0) {
    job.prompt.assign(1, token(row.ids[0], std::numeric_limits<double>::quiet_NaN(), {}));
  }
  // The last token's logits belong to what is generated.
  const std::int64_t count = std::min(hidden.size(0), row.length() - 1 - position);
  const std::int64_t most_top = job.request.logprobs ? job.request.top_logprobs : 0;
  for (std::int64_t first = 0; first < count; first += scored_rows) {
    const std::int64_t part = std::min(scored_rows, count - first);
    const at::Tensor logits =
        decoder.logits_of(hidden.narrow(0, first, part)).to(at::kCPU, at::kFloat).contiguous();
    const auto begin = job.prompt.size();
    job.prompt.resize(begin + static_cast<std::size_t>(part));
    const float* values = logits.const_data_ptr<float>();
    at::parallel_for(0, part, 1, [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t i = from; i < to; ++i) {
        const std::span<const float> of_row(values + i * logits.size(1), vocabulary);
        const std::int64_t id = row.ids[static_cast<std::size_t>(position + first + i + 1)];
        job.prompt[begin + static_cast<std::size_t>(i)] =
            token(id, logprob_of(of_row, id), most_likely(of_row, most_top));
      }
    });
  }
}

}  // namespace onset
