#include "mask_option.h"

#include <filesystem>
#include <system_error>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/wemask/mask.h"
#include "onset/wemask/mask_json.h"
#include "text.h"

namespace onset::app {
namespace {

// What other gains mean for the mask's dims.
std::string consequence(const MaskSpec& spec, const MaskFit& fit) {
  if (fit.overlap) {
    return str_cat("its dims overlap with those that this model's gains would choose by ",
                   fixed(*fit.overlap, 3), " (Jaccard, mean over the masked layers)");
  }
  return spec.is_chosen_by_token() ? "its dims are chosen while the model runs"
                                   : "its dims do not go by them";
}

// What `onset train` writes beside a model or an adapter that was trained under a mask.
void say_trained_mask(const std::filesystem::path& folder, const Log& log) {
  const std::filesystem::path file = folder / "wemask.json";
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return;
  log.warning(str_cat(file.string(),
                      ": this mask comes with the weights, which are used without it; ",
                      "--wemask with this file uses it"));
}

}  // namespace

void MaskFileOptions::declare(CommandLine& line) {
  line.group("WeMask");
  line.path(path, "--wemask", "FILE", "run under the mask of this file, made by onset mask make");
  declare_fit(line);
}

void MaskFileOptions::declare_fit(CommandLine& line) {
  line.toggle(
      strict, "--strict",
      "refuse a mask that was made for other norm gains: a fine-tune, another quantisation");
  line.toggle(refresh, "--refresh", "choose the mask's dims anew by this model's gains");
}

void MaskFileOptions::check() const {
  if (strict && refresh) {
    throw usage_error("--strict refuses a mask for other gains and --refresh makes it fit",
                      "give one of them");
  }
  if (!given() && (strict || refresh)) {
    throw usage_error(
        str_cat(strict ? "--strict" : "--refresh", " is about a mask, and none is given"),
        "add --wemask FILE");
  }
}

std::optional<MaskSpec> mask_for(const MaskFileOptions& options, const Model& model, const Log& log,
                                 const std::string& adapter) {
  options.check();
  if (!options.given()) {
    say_trained_mask(adapter.empty() ? model.checkpoint().path() : std::filesystem::path(adapter),
                     log);
    return std::nullopt;
  }
  auto spec = read_mask(options.path);
  if (spec.gamma == 0) log.warning(options.path + ": gamma is 0, so that the mask changes nothing");
  const auto fit = check_mask(spec, model, options.path);
  if (fit.same_gains) return spec;
  const auto difference =
      str_cat(options.path, ": the mask was made for other norm gains; ", consequence(spec, fit));
  if (options.strict) {
    throw input_error(difference,
                      "leave --strict out to use it as it is; --refresh chooses its dims anew");
  }
  if (options.refresh) {
    log.warning(difference + (fit.overlap ? "; they are chosen anew" : ""));
    return refreshed(spec, model);
  }
  log.warning(difference);
  return spec;
}

}  // namespace onset::app
