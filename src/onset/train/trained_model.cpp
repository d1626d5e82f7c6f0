#include "onset/train/trained_model.h"

#include <utility>

#include "onset/base/error.h"
#include "onset/base/file.h"
#include "onset/base/strings.h"
#include "onset/model/decoder.h"
#include "onset/model/save_model.h"
#include "onset/train/gradients.h"
#include "onset/train/memory_plan.h"
#include "onset/train/peft.h"
#include "onset/train/report_words.h"
#include "onset/wemask/mask.h"
#include "onset/wemask/mask_json.h"

namespace onset {
namespace {

LoraConfig lora_config(const LoraSettings& settings, const std::string& base) {
  LoraConfig config;
  config.rank = settings.r;
  config.alpha = settings.alpha;
  config.dropout = settings.dropout;
  config.rslora = settings.use_rslora;
  config.rank_pattern.assign(settings.rank_pattern.begin(), settings.rank_pattern.end());
  config.alpha_pattern.assign(settings.alpha_pattern.begin(), settings.alpha_pattern.end());
  const bool all =
      settings.target_modules.size() == 1 && settings.target_modules[0] == "all-linear";
  config.all_linear = all;
  // As in PEFT a single text may be a regex of whole names; no name of a module holds such signs.
  const bool regex =
      settings.target_modules.size() == 1 &&
      settings.target_modules[0].find_first_of("*+?[](){}|\\^$") != std::string::npos;
  if (regex) config.targets.regex = settings.target_modules[0];
  if (!all && !regex) config.targets.names = settings.target_modules;
  config.modules_to_save = settings.modules_to_save;
  config.base_model = base;
  return config;
}

std::unique_ptr<LoraAdapter> adapter_of(Decoder& decoder, const LoraSettings& settings,
                                        const std::string& base, std::uint64_t seed,
                                        std::optional<std::int64_t> memory, const Log& log) {
  if (settings.adapter.empty()) {
    const LoraConfig config = lora_config(settings, base);
    refuse_an_adapter_that_cannot_fit(new_lora_weights(decoder, config), memory);
    return std::make_unique<LoraAdapter>(decoder, config, new_lora(decoder, config, seed),
                                         /*trains=*/true);
  }
  PeftAdapter read = read_peft(decoder, settings.adapter, log);
  read.config.dropout = settings.dropout;
  return std::make_unique<LoraAdapter>(decoder, std::move(read.config), std::move(read.tensors),
                                       /*trains=*/true);
}

}  // namespace

std::optional<MaskSpec> mask_of(const TrainWemaskSettings& settings, const Model& model,
                                const Log& log) {
  if (!settings.given()) return std::nullopt;
  if (settings.wemask.empty()) {
    return make_mask(model,
                     {.k = settings.k, .rate = settings.rate, .from_layer = settings.from_layer});
  }
  MaskSpec mask = read_mask(settings.wemask);
  const MaskFit fit = check_mask(mask, model, settings.wemask);
  if (fit.overlap && settings.update == MaskUpdate::frozen) {
    log.warning(str_cat(settings.wemask, ": made for other norm gains than this model's; of the ",
                        "dims that it would get now, the mask has ",
                        percent(std::llround(*fit.overlap * 1000), 1000),
                        " %; wemask_update = \"recompute\" ", "chooses them anew"));
  }
  return mask;
}

TrainedModel::TrainedModel(const std::filesystem::path& path, const TrainSettings& settings,
                           const Log& log, std::optional<std::int64_t> memory)
    : model_(Model::open(path,
                         {.compute = settings.trainer.bf16 ? Compute::bf16 : Compute::f32,
                          .residency = Residency::resident,
                          .device = parse_device(settings.trainer.device)},
                         log)) {
  Decoder& decoder = model_.decoder_to_change();
  decoder.recompute_blocks(settings.trainer.gradient_checkpointing);
  PolicyOptions options{.mask = mask_of(settings.wemask, model_, log),
                        .mask_update = settings.wemask.update};
  if (settings.lora.use_peft) {
    adapter_ = adapter_of(decoder, settings.lora, settings.model,
                          static_cast<std::uint64_t>(settings.trainer.seed), memory, log);
    options.dropout = adapter_->dropout();
    policy_ = std::make_unique<Policy>(
        model_, adapter_->parameters(), [this] { adapter_->refresh(); }, options);
    // Products read what was converted.
    if (settings.trainer.bf16) decoder.release_pages();
  } else {
    const bool samples = settings.method == TrainMethod::grpo;
    parameters_ = std::make_unique<Parameters>(decoder, /*converted=*/samples);
    policy_ = std::make_unique<Policy>(
        model_, parameters_->all(), [this] { parameters_->refresh(); }, options);
  }
}

std::int64_t TrainedModel::trained_count() const { return element_count(policy_->trained()); }

std::string TrainedModel::words() const {
  const std::string count = grouped(trained_count());
  if (!adapter_) return str_cat("All ", count, " weights are trained.");
  return str_cat("An adapter of ", count, " weights is trained: ", summary(adapter_->tensors()),
                 ".");
}

void TrainedModel::write(const std::filesystem::path& folder) const {
  if (adapter_) {
    write_peft(folder, *adapter_);
  } else {
    OrderedJson key = OrderedJson::object();
    if (policy_->mask()) key["wemask"] = mask_json(*policy_->mask());
    save_model(
        model_, folder,
        {.parameters = parameters_.get(), .onset_key = key.empty() ? OrderedJson(nullptr) : key});
  }
  if (policy_->mask()) {
    write_file_atomically(folder / "wemask.json", mask_json(*policy_->mask()).dump(1) + "\n");
  }
}

}  // namespace onset
