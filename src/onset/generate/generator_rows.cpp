// How requests become rows, and rows end; tokens are chosen and handed out.
#include <ATen/Parallel.h>

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "onset/generate/generator_impl.h"
#include "onset/model/model.h"

namespace onset {

GenerationFailure current_generation_failure() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return {"out of memory", true};
  } catch (const std::exception& error) {
    // libtorch's messages carry a stack trace, and its allocator throws no bad_alloc.
    const std::string text = error.what();
    if (text.find("DefaultCPUAllocator") != std::string::npos) return {"out of memory", true};
    return {text.substr(0, text.find('\n')), false};
  }
}

void Generator::Impl::emit(const JobPointer& job, GenerationUpdate update) {
  if (update.finish) {
    job->finished[static_cast<std::size_t>(update.sample)] = true;
    if (job->all_finished()) jobs.erase(job->id);
  }
  outbox.emplace_back(job, std::move(update));
}

bool Generator::Impl::deliver() {
  const bool any = !outbox.empty();
  while (!outbox.empty()) {
    const auto [job, update] = std::move(outbox.front());
    outbox.pop_front();
    if (job->on_update) job->on_update(update);
  }
  return any;
}

void Generator::Impl::end_samples(const JobPointer& job, FinishReason reason,
                                  const std::string& error) {
  for (const auto& row : rows) {
    if (row->job == job) row->done = true;
  }
  std::erase(queue, job);
  std::erase(forking, job);
  for (std::int64_t sample = 0; sample < job->request.samples; ++sample) {
    if (job->finished[static_cast<std::size_t>(sample)]) continue;
    emit(job, {.sample = sample, .finish = reason, .error = error});
  }
}

void Generator::Impl::fail(const JobPointer& job, const GenerationFailure& failure) {
  // What its rows computed may be what is wrong, and is not kept.
  for (const auto& row : rows) {
    if (row->job == job) row->cache = decoder.new_cache();
  }
  end_samples(job, FinishReason::failed, failure.why);
}

bool Generator::Impl::drop_cancelled() {
  std::vector<JobPointer> cancelled;
  for (const auto& [id, job] : jobs) {
    if (job->cancelled) cancelled.push_back(job);
  }
  for (const auto& job : cancelled) end_samples(job, FinishReason::cancelled, {});
  remove_done_rows();
  return !cancelled.empty();
}

std::unique_ptr<GenerationRow> Generator::Impl::new_row(const JobPointer& job) const {
  auto row = std::make_unique<GenerationRow>(GenerationRow{.job = job,
                                                           .sample = job->started,
                                                           .ids = job->request.ids,
                                                           .cache = decoder.new_cache(),
                                                           .history = {},
                                                           .text = {}});
  row->history.prompt = job->prompt_counts;
  if (tokenizer != nullptr) {
    row->text.emplace(*tokenizer, job->request.ids, job->request.show_special, job->request.stop);
  }
  return row;
}

// A further sample of a prompt that is computed.
std::unique_ptr<GenerationRow> Generator::Impl::forked_row(const JobPointer& job) const {
  auto row = new_row(job);
  if (job->started + 1 < job->request.samples) {
    row->cache = job->prompt_cache->prefix_copy(job->prompt_cache->length());
  } else {
    row->cache = std::move(*job->prompt_cache);
    job->prompt_cache.reset();
  }
  return row;
}

// First the samples of prompts that are computed, then prompts that wait.
bool Generator::Impl::start_rows() {
  std::vector<Choice> choices;
  bool any = false;
  while (static_cast<std::int64_t>(rows.size()) < options.max_rows) {
    const bool forks = !forking.empty();
    if (!forks && queue.empty()) break;
    any = true;
    const JobPointer job = forks ? forking.front() : queue.front();
    try {
      rows.push_back(forks ? forked_row(job) : new_row(job));
    } catch (...) {
      fail(job, current_generation_failure());
      continue;
    }
    if (forks) {
      choices.push_back({rows.back().get(), job->prompt_logits.const_data_ptr<float>()});
    }
    auto& from = forks ? forking : queue;
    if (++job->started == job->request.samples || !forks) from.pop_front();
  }
  choose(choices);
  remove_done_rows();
  return any;
}

void Generator::Impl::remove_done_rows() {
  for (auto& row : rows) {
    if (!row->done || !row->job->shares_states()) continue;
    prefixes.put(std::move(row->cache), row->job->mask);
  }
  rows.remove_if([](const auto& row) { return row->done; });
}

void Generator::Impl::choose(const std::vector<Choice>& choices) {
  struct Chosen {
    Draw draw;
    std::vector<TokenLogprob> top;
    std::string error;
  };
  std::vector<Chosen> chosen(choices.size());
  const auto vocabulary = static_cast<std::size_t>(model.config().vocabulary);
  at::parallel_for(
      0, static_cast<std::int64_t>(choices.size()), 1, [&](std::int64_t begin, std::int64_t end) {
        for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
          const GenerationRow& row = *choices[i].row;
          const GenerationRequest& request = row.job->request;
          const std::span<const float> logits(choices[i].logits, vocabulary);
          const DrawKey key{.seed = request.sampling.seed,
                            .request = request.number,
                            .sample = static_cast<std::uint64_t>(row.sample),
                            .position = static_cast<std::uint64_t>(row.generated)};
          try {
            chosen[i].draw = sample_token(logits, request.sampling, row.history, key);
            if (request.logprobs && request.top_logprobs > 0) {
              chosen[i].top = most_likely(logits, request.top_logprobs);
            }
          } catch (const std::exception& error) {
            chosen[i].error = error.what();
          }
        }
      });
  for (std::size_t i = 0; i < choices.size(); ++i) {
    GenerationRow& row = *choices[i].row;
    if (row.done) continue;
    if (!chosen[i].error.empty()) {
      fail(row.job, {.why = chosen[i].error});
    } else {
      apply(row, chosen[i].draw, std::move(chosen[i].top));
    }
  }
}

GeneratedToken Generator::Impl::token(std::int64_t id, double logprob,
                                      std::vector<TokenLogprob> top) const {
  GeneratedToken result{.id = id, .logprob = logprob, .top = std::move(top)};
  if (tokenizer != nullptr && tokenizer->contains(id)) {
    result.bytes = tokenizer->piece_bytes(static_cast<TokenId>(id));
  }
  return result;
}

void Generator::Impl::apply(GenerationRow& row, const Draw& draw, std::vector<TokenLogprob> top) {
  const GenerationJob& job = *row.job;
  row.ids.push_back(draw.id);
  ++row.generated;
  ++row.history.generated[draw.id];
  ++counts.generated_tokens;
  GenerationUpdate update{.sample = row.sample};
  update.tokens.push_back(token(draw.id, draw.logprob, std::move(top)));
  update.tokens.back().sampled_logprob = draw.sampled_logprob;
  if (row.sample == 0 && row.generated == 1) update.prompt = std::move(row.job->prompt);
  const bool ends = std::find(job.ends.begin(), job.ends.end(), draw.id) != job.ends.end();
  if (!ends && row.text) update.text = row.text->push(draw.id);
  if (ends || (row.text && row.text->stopped())) {
    update.finish = FinishReason::stop;
  } else if (row.generated >= job.max_new) {
    update.finish = FinishReason::length;
  }
  if (update.finish) {
    row.done = true;
    if (row.text) {
      update.text += row.text->finish();
      // What was held back may hold the stop string.
      if (row.text->stopped()) update.finish = FinishReason::stop;
    }
  }
  emit(row.job, std::move(update));
}

void Generator::Impl::finish_without_tokens(GenerationRow& row) {
  row.done = true;
  emit(row.job,
       {.sample = 0, .finish = FinishReason::length, .prompt = std::move(row.job->prompt)});
  for (std::int64_t sample = 1; sample < row.job->request.samples; ++sample) {
    emit(row.job, {.sample = sample, .finish = FinishReason::length});
  }
}

}  // namespace onset
