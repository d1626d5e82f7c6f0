#include "onset/report/training_words.h"

#include <filesystem>
#include <string_view>

#include "onset/base/error.h"
#include "onset/base/json.h"
#include "onset/base/strings.h"
#include "onset/report/html.h"
#include "onset/train/settings_toml.h"

namespace onset {
namespace {

struct MethodWords {
  const char* name;
  const char* sentence;
};

MethodWords words_of(TrainMethod method) {
  switch (method) {
    case TrainMethod::sft:
      return {"SFT", "Supervised fine-tuning"};
    case TrainMethod::dpo:
      return {"DPO", "Direct preference optimisation"};
    case TrainMethod::grpo:
      return {"GRPO", "Group relative policy optimisation"};
    case TrainMethod::pretrain:
      break;
  }
  return {"Pre-training", "Pre-training"};
}

// The last part of a path, without a GGUF file's ending.
std::string short_name(const std::string& path) {
  std::filesystem::path given = std::filesystem::path(path).lexically_normal();
  if (!given.has_filename()) given = given.parent_path();
  std::string name = given.filename().string();
  constexpr std::string_view ending = ".gguf";
  if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  return valid_utf8(name.empty() || name == "." ? path : name);
}

std::string new_model(const PretrainSettings& model) {
  return str_cat("a new ", model.model_type, " model of ",
                 counted(model.num_hidden_layers, "layer"), " and ", model.hidden_size, " dims");
}

std::string what_is_trained(const TrainSettings& settings) {
  const std::string model = valid_utf8(settings.model);
  if (settings.method == TrainMethod::pretrain) {
    return str_cat(new_model(settings.pretrain), " with the tokenizer of ", model);
  }
  if (!settings.lora.use_peft) return str_cat("all weights of ", model);
  if (!settings.lora.adapter.empty()) {
    return str_cat("the adapter ", valid_utf8(settings.lora.adapter), " on ", model);
  }
  return str_cat("an adapter of rank ", settings.lora.r, " on ", model);
}

std::string mask_sentence(const TrainSettings& settings) {
  const TrainWemaskSettings& mask = settings.wemask;
  if (!mask.given()) return "No mask is in any pass.";
  std::string text = mask.wemask.empty()
                         ? str_cat("WeMask is in every pass, from layer ", *mask.from_layer, " on")
                         : str_cat("The mask ", valid_utf8(mask.wemask), " is in every pass");
  text += mask.update == MaskUpdate::recompute
              ? ", its dims chosen anew from the gains before each step"
              : ", with the dims that it begins with";
  const bool compares = settings.method == TrainMethod::dpo || settings.method == TrainMethod::grpo;
  if (compares && mask.reference == ReferenceWemask::none) text += "; the reference has none";
  return text + ".";
}

}  // namespace

std::optional<TrainSettings> written_settings(const std::string& toml) {
  constexpr std::string_view begin = "# onset train ";
  if (!toml.starts_with(begin)) return std::nullopt;
  const std::string name = toml.substr(begin.size(), toml.find('\n') - begin.size());
  for (const TrainMethod method :
       {TrainMethod::sft, TrainMethod::dpo, TrainMethod::grpo, TrainMethod::pretrain}) {
    if (name != name_of(method)) continue;
    TrainSettings settings = default_settings(method);
    try {
      apply_settings(TomlTable::parse(toml, "settings.toml"), settings);
    } catch (const Error&) {
      return std::nullopt;  // the page has them as they are
    }
    return settings;
  }
  return std::nullopt;
}

std::string run_heading(const TrainSettings& settings) {
  const bool is_new = settings.method == TrainMethod::pretrain;
  const TrainWemaskSettings& mask = settings.wemask;
  std::string masked = ", without a mask";
  if (!mask.wemask.empty()) masked = ", under " + short_name(mask.wemask);
  if (mask.wemask.empty() && mask.given()) {
    masked = str_cat(", masked from layer ", *mask.from_layer, " on");
  }
  return str_cat(words_of(settings.method).name, " of ",
                 is_new ? new_model(settings.pretrain) : short_name(settings.model), " on ",
                 short_name(settings.data.train_file), masked);
}

std::string run_sentences(const TrainSettings& settings) {
  const TrainDataSettings& data = settings.data;
  std::string text = str_cat(words_of(settings.method).sentence, " of ", what_is_trained(settings),
                             ", on ", valid_utf8(data.train_file));
  if (data.hold_out > 0) {
    text += str_cat(", one prompt in ", data.hold_out, " held out for evaluation");
  } else if (!data.eval_file.empty()) {
    text += str_cat(", evaluated on ", valid_utf8(data.eval_file));
  }
  return str_cat(text, ". ", mask_sentence(settings));
}

}  // namespace onset
