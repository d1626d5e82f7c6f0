// The state of a Generator between passes. Inside the generate room.
#pragma once

#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "onset/generate/generator.h"
#include "onset/generate/mask_table.h"
#include "onset/generate/prefix_cache.h"
#include "onset/generate/text_stream.h"
#include "onset/model/decoder.h"

namespace onset {

// A request under way.
struct GenerationJob {
  Generator::RequestId id = 0;
  GenerationRequest request;
  OnUpdate on_update;
  std::shared_ptr<const MaskSpec> mask;  // the one of MaskTable
  std::int64_t max_new = 0;              // what the context leaves of max_new_tokens
  std::vector<std::int64_t> ends;        // tokens that end it
  std::map<std::int64_t, std::int64_t> prompt_counts;
  bool cancelled = false;
  std::int64_t started = 0;            // samples that have, or had, a row
  std::vector<bool> finished;          // by sample
  std::vector<GeneratedToken> prompt;  // scored so far
  // For the samples that start behind the first one.
  std::optional<KvCache> prompt_cache;
  at::Tensor prompt_logits;  // [V]

  // As the released code masks, states depend on how the tokens were given: nothing is shared.
  [[nodiscard]] bool shares_states() const { return mask == nullptr || !mask->official_compat; }
  [[nodiscard]] bool all_finished() const;
};
using JobPointer = std::shared_ptr<GenerationJob>;

// The exception being handled, as it is told of a request; call in a catch block only.
struct GenerationFailure {
  std::string why;
  bool memory = false;
};
[[nodiscard]] GenerationFailure current_generation_failure();

// One sequence that is computed: a sample of a request.
struct GenerationRow {
  JobPointer job;
  std::int64_t sample = 0;
  std::vector<std::int64_t> ids;  // prompt and generated tokens
  KvCache cache;                  // of the first of them
  TokenHistory history;
  std::optional<TextStream> text;
  std::int64_t generated = 0;
  bool done = false;

  [[nodiscard]] std::int64_t length() const { return static_cast<std::int64_t>(ids.size()); }
  [[nodiscard]] std::int64_t pending() const { return length() - cache.length(); }
  // One token behind what is in the cache, not a prompt that is still computed.
  [[nodiscard]] bool decodes() const { return pending() == 1 && cache.length() > 0; }
};

struct Generator::Impl {
  Impl(const Model& model, const Tokenizer* tokenizer, const GeneratorOptions& options);

  [[nodiscard]] JobPointer checked(GenerationRequest request, OnUpdate on_update);
  bool step();

  // Part of a row that a pass computes.
  struct Part {
    GenerationRow* row;
    std::int64_t count;
  };
  // Logits that a token is drawn from.
  struct Choice {
    GenerationRow* row;
    const float* logits;
  };

  // Rows come and go.
  bool drop_cancelled();
  bool start_rows();
  [[nodiscard]] std::unique_ptr<GenerationRow> new_row(const JobPointer& job) const;
  [[nodiscard]] std::unique_ptr<GenerationRow> forked_row(const JobPointer& job) const;
  void remove_done_rows();
  void fail(const JobPointer& job, const GenerationFailure& failure);
  void end_samples(const JobPointer& job, FinishReason reason, const std::string& error);

  // A pass.
  [[nodiscard]] std::vector<Part> plan();
  [[nodiscard]] bool take_prefix(GenerationRow& row);
  void run_or_fail(const std::vector<Part>& parts);
  void run(const std::vector<Part>& parts);
  void add_masks(Hooks& hooks, const std::vector<Part>& parts, bool& any) const;
  void score_prompt(GenerationRow& row, const at::Tensor& hidden, std::int64_t position);

  // Tokens.
  void choose(const std::vector<Choice>& choices);
  void apply(GenerationRow& row, const Draw& draw, std::vector<TokenLogprob> top);
  [[nodiscard]] GeneratedToken token(std::int64_t id, double logprob,
                                     std::vector<TokenLogprob> top) const;
  void finish_without_tokens(GenerationRow& row);

  // Updates wait here until everything of a pass is in order, since a callback may throw.
  void emit(const JobPointer& job, GenerationUpdate update);
  bool deliver();

  const Model& model;
  const Decoder& decoder;
  const Tokenizer* tokenizer;
  GeneratorOptions options;
  std::int64_t context;  // 0: no limit
  std::vector<std::int64_t> model_ends;
  MaskTable masks;
  PrefixCache prefixes;
  GeneratorCounts counts;
  RequestId next_id = 1;
  std::map<RequestId, JobPointer> jobs;            // all that are not finished
  std::deque<JobPointer> queue;                    // not started
  std::deque<JobPointer> forking;                  // prompt computed, samples still to start
  std::list<std::unique_ptr<GenerationRow>> rows;  // in the order they came
  std::deque<std::pair<JobPointer, GenerationUpdate>> outbox;
};

}  // namespace onset
