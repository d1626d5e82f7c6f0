#include "onset/tokenizer/convert_gguf.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "onset/base/error.h"
#include "onset/checkpoint/gguf.h"
#include "onset/tokenizer/gguf_pretokenizers.h"
#include "onset/tokenizer/sentencepiece.h"
#include "onset/tokenizer/tokenizer_data.h"
#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

OrderedJson replace_part(std::string_view from, std::string_view to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

OrderedJson byte_level_part(bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

// Members of a vocabulary in the order of their ids. The object's own functions look for the key
// first, one by one.
class VocabularyJson {
 public:
  void add(std::string_view piece, std::size_t id) {
    json_.get_ref<OrderedJson::object_t&>().emplace_back(std::string(piece), id);
  }
  OrderedJson take() { return std::move(json_); }

 private:
  OrderedJson json_ = OrderedJson::object();
};

class Converter {
 public:
  Converter(const GgufFile& file, TokenizerData data, const std::string& where)
      : file_(file),
        data_(std::move(data)),
        where_(where),
        texts_(file.arrays.at("tokenizer.ggml.tokens").strings()) {}

  TokenizerFiles convert() {
    const bool sentencepiece =
        find_string(file_.scalars, "tokenizer.ggml.model", where_) == std::string("llama");
    OrderedJson& json = files_.tokenizer;
    json = {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}};
    json["added_tokens"] = added_tokens();
    if (sentencepiece) {
      add_sentencepiece();
    } else {
      add_byte_level();
    }
    add_config();
    return std::move(files_);
  }

 private:
  [[nodiscard]] OrderedJson added_tokens() const {
    OrderedJson list = OrderedJson::array();
    for (const AddedToken& token : data_.added) list.push_back(entry_of(token, /*with_id=*/true));
    return list;
  }

  static OrderedJson entry_of(const AddedToken& token, bool with_id) {
    OrderedJson entry;
    if (with_id) entry["id"] = token.id;
    entry["content"] = token.content;
    entry["single_word"] = token.single_word;
    entry["lstrip"] = token.lstrip;
    entry["rstrip"] = token.rstrip;
    entry["normalized"] = token.normalized;
    entry["special"] = token.special;
    return entry;
  }

  // A piece that stands twice belongs to the later id, as in Vocabulary.
  [[nodiscard]] OrderedJson vocabulary() const {
    VocabularyJson json;
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      if (data_.vocabulary.find(texts_[i]) == static_cast<TokenId>(i)) json.add(texts_[i], i);
    }
    return json.take();
  }

  static OrderedJson model(const OrderedJson& unknown, bool sentencepiece, bool ignore_merges) {
    return {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", unknown},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", sentencepiece},
            {"byte_fallback", sentencepiece},
            {"ignore_merges", ignore_merges}};
  }

  void add_byte_level() {
    const std::string pre =
        find_string(file_.scalars, "tokenizer.ggml.pre", where_).value_or("default");
    const GgufPretokenizer rule = gguf_pretokenizer(pre, where_);
    OrderedJson& json = files_.tokenizer;
    json["normalizer"] = rule.nfc ? OrderedJson{{"type", "NFC"}} : OrderedJson();
    OrderedJson parts = OrderedJson::array();
    for (const std::string& regex : gguf_pretokenizer_regexes(pre, where_)) {
      parts.push_back({{"type", "Split"},
                       {"pattern", {{"Regex", regex}}},
                       {"behavior", "Isolated"},
                       {"invert", false}});
    }
    parts.push_back(byte_level_part(/*use_regex=*/false));
    json["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", std::move(parts)}};
    json["post_processor"] = post_processor();
    json["decoder"] = byte_level_part(/*use_regex=*/true);
    json["model"] = model(nullptr, /*sentencepiece=*/false, rule.ignore_merges);
    json["model"]["vocab"] = vocabulary();
    OrderedJson merges = OrderedJson::array();
    for (const auto merge : file_.arrays.at("tokenizer.ggml.merges").strings()) {
      const std::size_t space = merge.find(' ', 1);
      merges.push_back({merge.substr(0, space), merge.substr(space + 1)});
    }
    json["model"]["merges"] = std::move(merges);
  }

  void add_sentencepiece() {
    const bool prefix = data_.decoder.strip_first_space;
    OrderedJson& json = files_.tokenizer;
    OrderedJson normalizers = OrderedJson::array();
    if (prefix) normalizers.push_back({{"type", "Prepend"}, {"prepend", space_symbol}});
    normalizers.push_back(replace_part(" ", space_symbol));
    json["normalizer"] = {{"type", "Sequence"}, {"normalizers", std::move(normalizers)}};
    json["pre_tokenizer"] = nullptr;
    json["post_processor"] = post_processor();
    OrderedJson decoders = {
        replace_part(space_symbol, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}};
    if (prefix) {
      decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
    }
    json["decoder"] = {{"type", "Sequence"}, {"decoders", std::move(decoders)}};
    const OrderedJson unknown =
        data_.bpe.unknown ? OrderedJson(data_.vocabulary.spelled(*data_.bpe.unknown)) : nullptr;
    json["model"] = model(unknown, /*sentencepiece=*/true, /*ignore_merges=*/false);
    json["model"]["vocab"] = vocabulary();
    json["model"]["merges"] = merges_by_score();
  }

  struct ScoredMerge {
    double score;
    TokenId left;
    TokenId right;
    std::size_t left_length;
    std::size_t right_length;
  };

  // Every way to join two pieces to one, the best score first; of equal ones the longer left half
  // first, then the longer right one, then as the pieces stand (transformers, generate_merges).
  [[nodiscard]] OrderedJson merges_by_score() const {
    const auto scores = file_.arrays.at("tokenizer.ggml.scores").numbers();
    std::vector<PieceType> types(texts_.size(), PieceType::normal);
    if (const auto found = file_.arrays.find("tokenizer.ggml.token_type");
        found != file_.arrays.end()) {
      const auto numbers = found->second.integers();
      for (std::size_t i = 0; i < types.size(); ++i) types[i] = static_cast<PieceType>(numbers[i]);
    }
    std::unordered_map<std::string_view, TokenId> ids;
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      if (types[i] == PieceType::normal) ids[texts_[i]] = static_cast<TokenId>(i);
    }
    std::vector<ScoredMerge> merges;
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      const std::string_view text = texts_[i];
      const auto own = ids.find(text);
      if (own == ids.end() || own->second != static_cast<TokenId>(i)) continue;
      std::size_t characters = 0;
      for (std::size_t at = 0; at < text.size(); ++characters) {
        at += decode_char(text, at).length;
      }
      std::size_t before = 0;
      for (std::size_t at = 0; at < text.size();) {
        at += decode_char(text, at).length;
        ++before;
        const auto left = ids.find(text.substr(0, at));
        const auto right = ids.find(text.substr(at));
        if (at == text.size() || left == ids.end() || right == ids.end()) continue;
        merges.push_back({scores[i], left->second, right->second, before, characters - before});
      }
    }
    std::stable_sort(merges.begin(), merges.end(), [](const ScoredMerge& a, const ScoredMerge& b) {
      return std::tie(a.score, a.left_length, a.right_length) >
             std::tie(b.score, b.left_length, b.right_length);
    });
    OrderedJson list = OrderedJson::array();
    for (const ScoredMerge& merge : merges) {
      list.push_back({texts_[static_cast<std::size_t>(merge.left)],
                      texts_[static_cast<std::size_t>(merge.right)]});
    }
    return list;
  }

  // What is put around a text.
  [[nodiscard]] OrderedJson post_processor() const {
    OrderedJson single = OrderedJson::array();
    OrderedJson pair = OrderedJson::array();
    OrderedJson specials = OrderedJson::object();
    const auto add_special = [&](TokenId id, OrderedJson& list, int type) {
      const std::string content = data_.vocabulary.spelled(id);
      list.push_back({{"SpecialToken", {{"id", content}, {"type_id", type}}}});
      specials[content] = {{"id", content},
                           {"ids", OrderedJson::array({id})},
                           {"tokens", OrderedJson::array({content})}};
    };
    const auto add_text = [&](const char* name, OrderedJson& list, int type) {
      for (const TokenId id : data_.prefix) add_special(id, list, type);
      list.push_back({{"Sequence", {{"id", name}, {"type_id", type}}}});
      for (const TokenId id : data_.suffix) add_special(id, list, type);
    };
    add_text("A", single, 0);
    add_text("A", pair, 0);
    add_text("B", pair, 1);
    return {{"type", "TemplateProcessing"},
            {"single", std::move(single)},
            {"pair", std::move(pair)},
            {"special_tokens", std::move(specials)}};
  }

  void add_config() {
    OrderedJson& json = files_.tokenizer_config;
    json["tokenizer_class"] = "PreTrainedTokenizerFast";
    json["clean_up_tokenization_spaces"] = false;
    add_token("bos_token", "tokenizer.ggml.bos_token_id");
    add_token("eos_token", "tokenizer.ggml.eos_token_id");
    add_token("unk_token", "tokenizer.ggml.unknown_token_id");
    add_token("pad_token", "tokenizer.ggml.padding_token_id");
    OrderedJson added = OrderedJson::object();
    for (const AddedToken& token : data_.added) {
      added[std::to_string(token.id)] = entry_of(token, /*with_id=*/false);
    }
    json["added_tokens_decoder"] = std::move(added);
    if (data_.chat_template) json["chat_template"] = *data_.chat_template;
    if (!data_.special.eos.empty()) files_.eos = data_.special.eos;
  }

  void add_token(const char* name, const std::string& key) {
    const auto id = find_int(file_.scalars, key, where_);
    if (!id || !data_.vocabulary.contains(*id)) return;
    files_.tokenizer_config[name] = data_.vocabulary.spelled(static_cast<TokenId>(*id));
  }

  const GgufFile& file_;
  TokenizerData data_;
  const std::string& where_;
  std::vector<std::string_view> texts_;
  TokenizerFiles files_;
};

}  // namespace

std::optional<TokenizerFiles> convert_gguf_tokenizer(const std::filesystem::path& path) {
  const std::string where = path.string();
  const GgufFile file = read_gguf(path);
  const auto model = find_string(file.scalars, "tokenizer.ggml.model", where);
  if (!model || *model == "none" || *model == "no_vocab") return std::nullopt;
  return Converter(file, load_tokenizer_gguf(path), where).convert();
}

}  // namespace onset
