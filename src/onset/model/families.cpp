#include "onset/model/families.h"

#include <algorithm>
#include <array>

namespace onset {
namespace {

constexpr std::array<Family, 4> table{{
    {.name = "llama",
     .gguf = "llama",
     .examples = "Llama 1 to 3.x, SmolLM2",
     .qkv_bias = false,
     .qk_norm = false,
     .tied_by_default = false,
     .gguf_permuted_qk = true,
     .window = WindowRule::none},
    {.name = "mistral",
     .gguf = "mistral",
     .examples = "Mistral",
     .qkv_bias = false,
     .qk_norm = false,
     .tied_by_default = false,
     .gguf_permuted_qk = true,
     .window = WindowRule::all},
    {.name = "qwen2",
     .gguf = "qwen2",
     .examples = "Qwen2, Qwen2.5",
     .qkv_bias = true,
     .qk_norm = false,
     .tied_by_default = false,
     .gguf_permuted_qk = false,
     .window = WindowRule::opt_in},
    {.name = "qwen3",
     .gguf = "qwen3",
     .examples = "Qwen3",
     .qkv_bias = false,
     .qk_norm = true,
     .tied_by_default = false,
     .gguf_permuted_qk = false,
     .window = WindowRule::opt_in},
}};

template <typename Member>
const Family* find_family(Member member, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const Family& family) { return family.*member == name; });
  return found == table.end() ? nullptr : &*found;
}

}  // namespace

std::span<const Family> families() { return table; }

const Family* family_of_hf(std::string_view model_type) {
  return find_family(&Family::name, model_type);
}

const Family* family_of_gguf(std::string_view architecture) {
  return find_family(&Family::gguf, architecture);
}

std::string supported_architectures() {
  std::string list;
  for (const Family& family : table) {
    list.append(list.empty() ? "" : ", ").append(family.name);
    list.append(" (").append(family.examples).append(")");
  }
  return list;
}

}  // namespace onset
