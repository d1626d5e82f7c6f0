#include "default_mask.h"

#include "onset/massive/scan.h"
#include "prompts.h"

namespace onset::app {

FoundMassive find_massive(const std::filesystem::path& path, const Model& model, const Log& log) {
  PromptEncoder encoder(path, {}, model.config(), log);
  std::vector<ScanPrompt> prompts;
  for (const auto& text : built_in_texts()) {
    const auto prompt = encoder.encode({"built-in text", text});
    prompts.push_back({prompt.text, prompt.ids});
  }
  const auto found = scan(model, prompts, {}, log);
  return {found.me_layer, found.massive_dims};
}

}  // namespace onset::app
