#include "onset/tokenizer/gguf_pretokenizers.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "onset/base/error.h"
#include "onset/base/strings.h"

namespace onset {
namespace {

// The known patterns, or else regexes, one inside the pieces of the other.
struct Row {
  std::string_view name;
  std::array<std::string_view, 3> patterns;
  bool nfc = false;
  bool ignore_merges = false;
  bool add_bos = false;
};

constexpr std::array<Row, 16> rows = {{
    {"gpt-2", {"gpt2"}},
    {"phi-2", {"gpt2"}},
    {"olmo", {"gpt2"}},
    {"mpt", {"gpt2"}},
    {"smollm", {"digits", "gpt2"}},
    {"starcoder", {"digits", "gpt2"}},
    {"refact", {"digits", "gpt2"}},
    {"command-r", {"digits", "gpt2"}},
    {"codeshell", {"digits", "gpt2"}},
    {"qwen2", {"qwen2"}, /*nfc=*/true},
    {"deepseek-r1-qwen", {"qwen2"}, /*nfc=*/true},
    {"llama3", {"llama3"}, /*nfc=*/false, /*ignore_merges=*/true, /*add_bos=*/true},
    {"llama-v3", {"llama3"}, /*nfc=*/false, /*ignore_merges=*/true, /*add_bos=*/true},
    {"llama-bpe", {"llama3"}, /*nfc=*/false, /*ignore_merges=*/true, /*add_bos=*/true},
    {"dbrx", {"llama3"}},
    {"deepseek-v3", {"digits by three", "cjk", "deepseek3"}},
}};

// Letters that have a case, as the makers of DeepSeek LLM list them.
#define ONSET_CASED_LETTERS                                                                \
  R"(\x{41}-\x{5A}\x{61}-\x{7A}\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA})"            \
  R"(\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF}\x{370}-\x{373}\x{376}-\x{377})"         \
  R"(\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5})"   \
  R"(\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5})"     \
  R"(\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B})"                \
  R"(\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D})"                \
  R"(\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D})"         \
  R"(\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4})"        \
  R"(\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC})"                \
  R"(\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115})"         \
  R"(\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139})" \
  R"(\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}-\x{2184}\x{2C00}-\x{2C7B})"        \
  R"(\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}-\x{2CF3}\x{A640}-\x{A66D})"                \
  R"(\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E})"                \
  R"(\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A})"                \
  R"(\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB})"          \
  R"(\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943})"

// Han, what lies before it from U+0800 on, and Hangul.
#define ONSET_DEEPSEEK_SCRIPTS R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)"

struct RegexRow {
  std::string_view name;
  std::array<std::string_view, 6> regexes;
  bool ignore_merges = false;
};

// "default" is llama.cpp's rule for a file that names none.
constexpr std::array<RegexRow, 4> regex_rows = {{
    {"default",
     {R"([\p{P}\$\+<=>\^~\|]+)",
      R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))", R"(\p{N}+)",
      "[0-9][0-9][0-9]"}},
    {"deepseek-llm",
     {R"([\r\n])", R"(\s?[)" ONSET_CASED_LETTERS "]+",
      R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)",
      R"(\s+$)", ONSET_DEEPSEEK_SCRIPTS, R"(\p{N}+)"}},
    {"deepseek-coder",
     {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", ONSET_DEEPSEEK_SCRIPTS, R"(\p{N})"}},
    {"tekken",
     {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
      R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
      R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
     /*ignore_merges=*/true},
}};

#undef ONSET_CASED_LETTERS
#undef ONSET_DEEPSEEK_SCRIPTS

std::string known_names() {
  std::vector<std::string> names;
  names.reserve(rows.size() + regex_rows.size());
  for (const auto& row : rows) names.emplace_back(row.name);
  for (const auto& row : regex_rows) names.emplace_back(row.name);
  return join(names, ", ");
}

Error unknown_name(const std::string& name, const std::string& where) {
  return input_error(
      str_cat(where, ": tokenizer.ggml.pre ", quote(name), " is not a known pre-tokenizer"),
      str_cat("known are ", known_names()));
}

}  // namespace

GgufPretokenizer gguf_pretokenizer(const std::string& name, const std::string& where) {
  GgufPretokenizer result;
  for (const auto& row : rows) {
    if (row.name != name) continue;
    for (const auto pattern : row.patterns) {
      if (!pattern.empty()) {
        result.pretokenizer.steps.emplace_back().known = &pattern_named(pattern);
      }
    }
    result.nfc = row.nfc;
    result.ignore_merges = row.ignore_merges;
    result.add_bos = row.add_bos;
    return result;
  }
  for (const auto& row : regex_rows) {
    if (row.name != name) continue;
    for (const auto regex : row.regexes) {
      if (!regex.empty()) result.pretokenizer.steps.emplace_back().regex.emplace(regex, where);
    }
    result.ignore_merges = row.ignore_merges;
    return result;
  }
  throw unknown_name(name, where);
}

std::vector<std::string> gguf_pretokenizer_regexes(const std::string& name,
                                                   const std::string& where) {
  std::vector<std::string> regexes;
  for (const auto& row : rows) {
    if (row.name != name) continue;
    for (const auto pattern : row.patterns) {
      if (!pattern.empty()) regexes.emplace_back(pattern_named(pattern).regex);
    }
    return regexes;
  }
  for (const auto& row : regex_rows) {
    if (row.name != name) continue;
    for (const auto regex : row.regexes) {
      if (!regex.empty()) regexes.emplace_back(regex);
    }
    return regexes;
  }
  throw unknown_name(name, where);
}

}  // namespace onset
