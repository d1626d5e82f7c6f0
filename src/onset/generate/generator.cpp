#include "onset/generate/generator.h"

#include <algorithm>
#include <utility>

#include "onset/base/error.h"
#include "onset/generate/generator_impl.h"
#include "onset/model/model.h"
#include "onset/tokenizer/tokenizer.h"

namespace onset {
namespace {

void add_new(std::vector<std::int64_t>& ids, std::int64_t id) {
  if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
}

void require_usage(bool condition, const std::string& message, const std::string& hint = {}) {
  if (!condition) throw usage_error(message, hint);
}

}  // namespace

std::string_view name_of(FinishReason reason) {
  switch (reason) {
    case FinishReason::length:
      return "length";
    case FinishReason::cancelled:
      return "cancelled";
    case FinishReason::failed:
      return "failed";
    case FinishReason::stop:
      break;
  }
  return "stop";
}

bool GenerationJob::all_finished() const {
  return std::all_of(finished.begin(), finished.end(), [](bool done) { return done; });
}

Generator::Impl::Impl(const Model& given_model, const Tokenizer* given_tokenizer,
                      const GeneratorOptions& given)
    : model(given_model),
      decoder(given_model.decoder()),
      tokenizer(given_tokenizer),
      options(given),
      context(given.context > 0 ? given.context : given_model.config().context),
      masks(given_model),
      prefixes(given_model.config(), given.prefix_cache_bytes) {
  require_usage(options.max_rows > 0 && options.prefill_tokens > 0,
                "a generator needs at least one row, and one prompt token in a pass");
  for (const std::int64_t id : model.config().eos) add_new(model_ends, id);
  if (tokenizer == nullptr) return;
  for (const TokenId id : tokenizer->special().eos) add_new(model_ends, id);
}

JobPointer Generator::Impl::checked(GenerationRequest request, OnUpdate on_update) {
  const std::int64_t vocabulary = model.config().vocabulary;
  const auto length = static_cast<std::int64_t>(request.ids.size());
  require_usage(length > 0, "the prompt has no token", "give at least one");
  for (const std::int64_t id : request.ids) {
    require_usage(id >= 0 && id < vocabulary,
                  str_cat("token id ", id, " is outside the model's vocabulary of ", vocabulary));
  }
  require_usage(request.max_new_tokens >= 0, "max_new_tokens is negative");
  require_usage(request.samples > 0, "samples is less than 1");
  require_usage(
      request.top_logprobs >= 0 && request.top_logprobs <= vocabulary,
      str_cat("top_logprobs is ", request.top_logprobs, ", and has to be from 0 to ", vocabulary));
  const bool scores_only = request.max_new_tokens == 0;
  require_usage(context == 0 || length < context || (scores_only && length == context),
                str_cat("the prompt has ", length, " tokens, and the context is ", context),
                "give a shorter prompt");
  require_usage(tokenizer != nullptr || request.stop.empty(),
                "stop strings need a tokenizer, and this model has none", "use stop ids");
  for (const std::string& stop : request.stop) {
    require_usage(!stop.empty(), "a stop string is empty");
  }
  check_sampling(request.sampling);
  for (const auto& [id, bias] : request.sampling.logit_bias) {
    require_usage(id < vocabulary, str_cat("logit_bias: token id ", id,
                                           " is outside the model's vocabulary of ", vocabulary));
  }
  auto job = std::make_shared<GenerationJob>();
  job->mask = masks.resolve(request.mask);
  job->max_new = request.max_new_tokens;
  if (context > 0) job->max_new = std::min(job->max_new, context - length);
  if (!request.ignore_eos) job->ends = model_ends;
  for (const std::int64_t id : request.stop_ids) add_new(job->ends, id);
  if (request.sampling.repetition_penalty != 1.0) {
    for (const std::int64_t id : request.ids) ++job->prompt_counts[id];
  }
  job->finished.resize(static_cast<std::size_t>(request.samples));
  job->request = std::move(request);
  job->on_update = std::move(on_update);
  return job;
}

Generator::Generator(const Model& model, const Tokenizer* tokenizer,
                     const GeneratorOptions& options)
    : impl_(std::make_unique<Impl>(model, tokenizer, options)) {}

Generator::~Generator() = default;

Generator::RequestId Generator::submit(GenerationRequest request, OnUpdate on_update) {
  JobPointer job = impl_->checked(std::move(request), std::move(on_update));
  job->id = impl_->next_id++;
  impl_->jobs[job->id] = job;
  impl_->queue.push_back(job);
  return job->id;
}

void Generator::cancel(RequestId id) {
  if (const auto found = impl_->jobs.find(id); found != impl_->jobs.end()) {
    found->second->cancelled = true;
  }
}

bool Generator::step() { return impl_->step(); }

GeneratorCounts Generator::counts() const {
  GeneratorCounts counts = impl_->counts;
  counts.waiting = static_cast<std::int64_t>(impl_->queue.size());
  counts.running = static_cast<std::int64_t>(impl_->rows.size());
  return counts;
}

std::vector<std::vector<Completion>> generate_all(Generator& generator,
                                                  std::span<const GenerationRequest> requests) {
  std::vector<std::vector<Completion>> results(requests.size());
  std::size_t unfinished = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    results[i].resize(static_cast<std::size_t>(std::max<std::int64_t>(requests[i].samples, 0)));
    unfinished += results[i].size();
    static_cast<void>(generator.submit(requests[i], [&, i](const GenerationUpdate& update) {
      Completion& completion = results[i][static_cast<std::size_t>(update.sample)];
      completion.tokens.insert(completion.tokens.end(), update.tokens.begin(), update.tokens.end());
      if (!update.prompt.empty()) completion.prompt = update.prompt;
      completion.text += update.text;
      if (!update.finish) return;
      completion.finish = *update.finish;
      completion.error = update.error;
      --unfinished;
    }));
  }
  while (unfinished > 0 && generator.step()) {
  }
  return results;
}

}  // namespace onset
