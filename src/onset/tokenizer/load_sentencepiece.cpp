// tokenizer.model: SentencePiece's ModelProto, read without its library.
#include <algorithm>

#include "onset/base/error.h"
#include "onset/base/file.h"
#include "onset/base/strings.h"
#include "onset/tokenizer/folder_config.h"
#include "onset/tokenizer/protobuf.h"
#include "onset/tokenizer/sentencepiece.h"
#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

enum class ModelType { unigram = 1, bpe, word, character };

// What onset needs of ModelProto, with the defaults of its definition.
struct Model {
  std::vector<ScoredPiece> pieces;
  std::int32_t type = static_cast<std::int32_t>(ModelType::unigram);
  bool suffix_spaces = false;
  bool byte_fallback = false;
  std::int32_t bos = 1;
  std::int32_t eos = 2;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
  std::string_view charsmap;
  std::string_view denormalizer;
};

ScoredPiece read_piece(std::string_view bytes, const std::string& where) {
  ScoredPiece piece;
  for (ProtobufReader reader(bytes, where); reader.next();) {
    if (reader.field() == 1) piece.text = reader.bytes();
    if (reader.field() == 2) piece.score = reader.number();
    if (reader.field() == 3) piece.type = static_cast<PieceType>(reader.int32());
  }
  return piece;
}

void read_trainer(std::string_view bytes, const std::string& where, Model& model) {
  for (ProtobufReader reader(bytes, where); reader.next();) {
    switch (reader.field()) {
      case 3:
        model.type = reader.int32();
        break;
      case 24:
        model.suffix_spaces = reader.boolean();
        break;
      case 35:
        model.byte_fallback = reader.boolean();
        break;
      case 41:
        model.bos = reader.int32();
        break;
      case 42:
        model.eos = reader.int32();
        break;
      default:
        break;
    }
  }
}

void read_normalizer(std::string_view bytes, const std::string& where, Model& model) {
  for (ProtobufReader reader(bytes, where); reader.next();) {
    switch (reader.field()) {
      case 2:
        model.charsmap = reader.bytes();
        break;
      case 3:
        model.add_dummy_prefix = reader.boolean();
        break;
      case 4:
        model.remove_extra_whitespaces = reader.boolean();
        break;
      case 5:
        model.escape_whitespaces = reader.boolean();
        break;
      default:
        break;
    }
  }
}

void read_denormalizer(std::string_view bytes, const std::string& where, Model& model) {
  for (ProtobufReader reader(bytes, where); reader.next();) {
    if (reader.field() == 2) model.denormalizer = reader.bytes();
  }
}

Model read_model(std::string_view bytes, const std::string& where) {
  Model model;
  for (ProtobufReader reader(bytes, where); reader.next();) {
    switch (reader.field()) {
      case 1:
        model.pieces.push_back(
            read_piece(reader.bytes(), str_cat(where, ": piece ", model.pieces.size())));
        break;
      case 2:
        read_trainer(reader.bytes(), where + ": trainer_spec", model);
        break;
      case 3:
        read_normalizer(reader.bytes(), where + ": normalizer_spec", model);
        break;
      case 5:
        read_denormalizer(reader.bytes(), where + ": denormalizer_spec", model);
        break;
      default:
        break;
    }
  }
  return model;
}

std::string name_of(std::int32_t type) {
  switch (static_cast<ModelType>(type)) {
    case ModelType::unigram:
      return "Unigram";
    case ModelType::bpe:
      return "BPE";
    case ModelType::word:
      return "Word";
    case ModelType::character:
      return "Char";
  }
  return std::to_string(type);
}

void check(const Model& model, const std::string& where) {
  require_input(model.type == static_cast<std::int32_t>(ModelType::bpe), where, ": model type ",
                name_of(model.type), " is not known; known is BPE");
  require_input(!model.suffix_spaces, where,
                ": treat_whitespace_as_suffix is set, which is not known");
  require_input(model.denormalizer.empty(), where,
                ": denormalizer_spec has a table of characters, which is not known");
  for (std::size_t i = 0; i < model.pieces.size(); ++i) {
    require_input(!model.pieces[i].text.empty(), where, ": piece ", i, " is empty");
  }
}

void check_distinct(const Model& model, const Vocabulary& vocabulary, const std::string& where) {
  for (std::size_t i = 0; i < model.pieces.size(); ++i) {
    const auto found = vocabulary.find(model.pieces[i].text);
    require_input(found == static_cast<TokenId>(i), where, ": piece ", i, ", ",
                  quote(model.pieces[i].text), ", stands twice");
  }
}

SentencePieceRule rule_of(const Model& model, bool legacy, const std::string& where) {
  SentencePieceRule rule;
  const PrefixScheme scheme = legacy ? PrefixScheme::always : PrefixScheme::first;
  rule.dummy_prefix = model.add_dummy_prefix ? scheme : PrefixScheme::never;
  rule.remove_extra_whitespaces = model.remove_extra_whitespaces;
  rule.escape_whitespaces = model.escape_whitespaces;
  if (!model.charsmap.empty()) {
    rule.charsmap = std::make_shared<const Charsmap>(model.charsmap, where + ": normalizer_spec");
  }
  return rule;
}

// What the configuration lists, then the pieces of the model that stand for no text.
void add_tokens(const Model& model, const FolderConfig& config, TokenizerData& data,
                const std::string& where) {
  for (const auto& token : config.added_tokens()) add_token(data, token, where);
  for (std::size_t i = 0; i < model.pieces.size(); ++i) {
    const ScoredPiece& piece = model.pieces[i];
    AddedToken token;
    token.content = piece.text;
    token.id = static_cast<TokenId>(i);
    token.special = true;
    if (piece.type == PieceType::control || piece.type == PieceType::unknown) {
      add_token(data, token, where);
    }
    if (piece.type == PieceType::user_defined) data.frozen.push_back(token);
  }
}

std::optional<TokenId> control_piece(const Model& model, std::int32_t id) {
  const bool known = id >= 0 && static_cast<std::size_t>(id) < model.pieces.size() &&
                     model.pieces[static_cast<std::size_t>(id)].type == PieceType::control;
  return known ? std::optional<TokenId>(id) : std::nullopt;
}

}  // namespace

TokenizerData load_sentencepiece(const std::filesystem::path& path) {
  const std::string where = path.string();
  const std::string bytes = read_file(path, max_tokenizer_bytes);
  const Model model = read_model(bytes, where);
  check(model, where);
  const FolderConfig config(path.parent_path());
  TokenizerData data;
  set_scored_pieces(data, model.pieces, model.byte_fallback, where);
  check_distinct(model, data.vocabulary, where);
  NormalizerStep step;
  step.kind = NormalizerStep::Kind::sentencepiece;
  // Without a configuration the old rule holds, as in the reference.
  step.rule = rule_of(model, config.flag("legacy").value_or(true), where);
  data.normalizer.steps.push_back(std::move(step));
  data.decoder.kind = Decoder::Kind::sentencepiece;
  data.decoder.strip_first_space = model.add_dummy_prefix || model.remove_extra_whitespaces;
  data.decoder.strip_all_spaces = model.remove_extra_whitespaces;
  add_tokens(model, config, data, where);
  data.special.bos = control_piece(model, model.bos);
  if (data.special.bos) data.prefix = {*data.special.bos};
  if (const auto eos = control_piece(model, model.eos)) data.special.eos = {*eos};
  config.apply(data, /*default_bos=*/true);
  return data;
}

}  // namespace onset
