#include "onset/model/capture.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/checkpoint/safetensors.h"
#include "onset/model/batches.h"
#include "onset/model/decoder.h"

namespace onset {
namespace {

// Logits of a large vocabulary are by far the largest tensor of a pass.
constexpr std::int64_t rows_per_pass_with_logits = 512;

class FileSink {
 public:
  explicit FileSink(const std::filesystem::path& path) : writer_(path) {}

  void add(const std::string& name, DType dtype, const at::Tensor& tensor) {
    const at::Tensor flat = tensor.contiguous();
    const auto size = static_cast<std::size_t>(flat.nbytes());
    writer_.add(name, dtype, flat.sizes(),
                {static_cast<const std::byte*>(flat.const_data_ptr()), size});
    ++summary_.tensors;
    summary_.bytes += size;
  }
  SafetensorsWriter& writer() { return writer_; }
  [[nodiscard]] const CaptureSummary& summary() const { return summary_; }

 private:
  SafetensorsWriter writer_;
  CaptureSummary summary_;
};

// The first site that shows NaN or infinity is said; scores are -inf where masked.
class FiniteCheck {
 public:
  explicit FiniteCheck(const Log& log) : log_(log) {}

  void see(const SiteContext& context, const at::Tensor& tensor) {
    if (said_ || context.site.kind == SiteKind::attn_scores) return;
    if (tensor.isfinite().all().item<bool>()) return;
    said_ = true;
    log_.warning(str_cat("the captured ", site_name(context.site),
                         " holds NaN or infinity, and so may what follows; `onset inspect MODEL "
                         "--verify` names the tensors that do"));
  }

 private:
  const Log& log_;
  bool said_ = false;
};

// Rows of an expert: those of each prompt apart, and beside them which tokens they are. A prompt
// none of whose tokens came to the expert has neither.
void write_expert_site(FileSink& sink, std::size_t first_prompt, const SiteContext& context,
                       const at::Tensor& tensor) {
  std::size_t begin = 0;
  for (std::size_t s = 0; s < context.sequences.size(); ++s) {
    const SequenceRows& rows = context.sequences[s];
    std::vector<std::int64_t> tokens;
    while (begin + tokens.size() < context.rows.size() &&
           context.rows[begin + tokens.size()] < rows.row + rows.count) {
      tokens.push_back(context.rows[begin + tokens.size()] - rows.row);
    }
    if (tokens.empty()) continue;
    const std::string name = str_cat(first_prompt + s, ".", site_name(context.site));
    const auto count = static_cast<std::int64_t>(tokens.size());
    sink.add(name, DType::f32,
             tensor.narrow(0, static_cast<std::int64_t>(begin), count).to(at::kFloat));
    sink.add(name + ".tokens", DType::i64, at::tensor(tokens, at::kLong));
    begin += tokens.size();
  }
}

void write_site(FileSink& sink, std::size_t first_prompt, const SiteContext& context,
                const at::Tensor& tensor) {
  if (is_expert_site(context.site.kind)) {
    return write_expert_site(sink, first_prompt, context, tensor);
  }
  const auto name = [&](std::size_t sequence) {
    return str_cat(first_prompt + sequence, ".", site_name(context.site));
  };
  if (context.sequence >= 0) {
    sink.add(name(static_cast<std::size_t>(context.sequence)), DType::f32, tensor.to(at::kFloat));
    return;
  }
  for (std::size_t s = 0; s < context.sequences.size(); ++s) {
    const SequenceRows& rows = context.sequences[s];
    const at::Tensor part = tensor.narrow(0, rows.row, rows.count);
    if (part.scalar_type() == at::kLong) {
      sink.add(name(s), DType::i64, part);
    } else {
      sink.add(name(s), DType::f32, part.to(at::kFloat));
    }
  }
}

void describe_file(FileSink& sink, const Model& model, const SiteSet& sites) {
  std::vector<std::string> names;
  for (const SiteId site : sites.list()) names.push_back(site_name(site));
  sink.writer().set_metadata("format", "onset.capture.1");
  sink.writer().set_metadata("architecture", model.config().architecture);
  sink.writer().set_metadata("compute", std::string(compute_name(model.options().compute)));
  sink.writer().set_metadata("sites", join(names, ","));
}

}  // namespace

CaptureSummary capture(const Model& model, const std::vector<std::vector<std::int64_t>>& prompts,
                       const SiteSet& sites, const std::filesystem::path& path, const Log& log,
                       const std::map<std::string, std::string>& metadata,
                       const Hooks* interventions) {
  if (prompts.empty()) throw usage_error("capture needs at least one prompt");
  std::vector<std::int64_t> lengths;
  for (const auto& ids : prompts) {
    if (ids.empty()) throw usage_error(str_cat("prompt ", lengths.size(), " has no tokens"));
    lengths.push_back(static_cast<std::int64_t>(ids.size()));
  }
  const c10::InferenceMode inference;
  const bool with_head =
      sites.contains({SiteKind::logits, -1}) || sites.contains({SiteKind::final_norm, -1});
  const auto total = static_cast<std::int64_t>(prompts.size());
  FileSink sink(path);
  FiniteCheck check(log);
  for (const auto& [key, value] : metadata) sink.writer().set_metadata(key, value);
  describe_file(sink, model, sites);
  for (const PromptRange& range :
       divide(lengths, with_head ? rows_per_pass_with_logits : rows_per_pass)) {
    std::vector<SequenceInput> batch;
    for (std::size_t p = range.begin; p < range.end; ++p) {
      batch.push_back({.ids = prompts[p], .cache = nullptr});
      sink.add(str_cat(p, ".ids"), DType::i64, at::tensor(prompts[p], at::kLong));
    }
    Hooks hooks = edited_as(interventions, model.config().layer_count());
    hooks.observe(sites, [&](const SiteContext& context, const at::Tensor& tensor) {
      check.see(context, tensor);
      write_site(sink, range.begin, context, tensor);
    });
    static_cast<void>(
        model.decoder().forward(batch, with_head ? LogitRows::all : LogitRows::none, &hooks));
    log.step("prompts", static_cast<std::int64_t>(range.end), total);
  }
  sink.writer().commit();
  return sink.summary();
}

}  // namespace onset
