#include "onset/tokenizer/model_reader.h"

#include "onset/base/error.h"

namespace onset {
namespace {

constexpr std::size_t max_depth = 64;

class Handler final : public nlohmann::json_sax<Json> {
 public:
  Handler(TokenizerFile& file, const std::string& where) : file_(file), where_(where) {}

  bool null() override { return value(nullptr); }
  bool boolean(bool flag) override { return value(flag); }
  bool number_integer(number_integer_t number) override {
    if (place_ == Place::vocabulary) bad_id(number);
    return value(number);
  }
  bool number_unsigned(number_unsigned_t number) override {
    if (place_ != Place::vocabulary) return value(number);
    if (number > static_cast<number_unsigned_t>(max_token_id)) bad_id(number);
    require_input(file_.vocabulary.add(key_, static_cast<TokenId>(number)), where_,
                  ": model.vocab: id ", number, " stands twice");
    return true;
  }
  bool number_float(number_float_t number, const string_t& /*text*/) override {
    return value(number);
  }
  bool string(string_t& text) override {
    if (place_ == Place::merges) return merge(text);
    if (place_ == Place::merge_pair) return merge_half(text);
    return value(text);
  }
  bool binary(binary_t& /*bytes*/) override { return false; }

  bool start_object(std::size_t /*size*/) override {
    if (in_model() && key_ == "vocab") {
      place_ = Place::vocabulary;
      file_.has_vocabulary = true;
      return true;
    }
    return open(Json::object());
  }
  bool key(string_t& name) override {
    key_ = name;
    return true;
  }
  bool end_object() override {
    if (place_ == Place::vocabulary) {
      place_ = Place::document;
      return true;
    }
    return close();
  }
  bool start_array(std::size_t /*size*/) override {
    if (in_model() && key_ == "merges") {
      place_ = Place::merges;
      return true;
    }
    if (place_ == Place::merges) {
      place_ = Place::merge_pair;
      halves_ = 0;
      start_ = file_.merge_text.size();
      return true;
    }
    return open(Json::array());
  }
  bool end_array() override {
    if (place_ == Place::merge_pair) {
      if (halves_ != 2) bad_merge();
      place_ = Place::merges;
      push_merge(start_, middle_);
      return true;
    }
    if (place_ == Place::merges) {
      place_ = Place::document;
      return true;
    }
    return close();
  }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    throw input_error(str_cat(where_, ": not valid JSON at byte ", position));
  }

 private:
  enum class Place { document, vocabulary, merges, merge_pair };

  [[nodiscard]] bool in_model() const {
    return place_ == Place::document && stack_.size() == 2 && outer_key_ == "model";
  }

  template <typename Number>
  [[noreturn]] void bad_id(Number number) const {
    throw input_error(str_cat(where_, ": model.vocab: id ", number, " is out of range"));
  }
  [[noreturn]] void bad_merge() const {
    throw input_error(str_cat(where_, ": model.merges: entry ", file_.merges.size(),
                              R"( should be "a b" or ["a", "b"])"));
  }

  bool merge(const std::string& text) {
    const std::size_t space = text.find(' ');
    if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) bad_merge();
    const std::size_t start = file_.merge_text.size();
    file_.merge_text.append(text, 0, space);
    file_.merge_text.append(text, space + 1);
    push_merge(start, start + space);
    return true;
  }
  bool merge_half(const std::string& text) {
    if (++halves_ > 2) bad_merge();
    file_.merge_text.append(text);
    if (halves_ == 1) middle_ = file_.merge_text.size();
    return true;
  }
  void push_merge(std::size_t start, std::size_t middle) {
    require_input(file_.merge_text.size() <= UINT32_MAX, where_, ": model.merges is too long");
    file_.merges.push_back({static_cast<std::uint32_t>(start), static_cast<std::uint32_t>(middle),
                            static_cast<std::uint32_t>(file_.merge_text.size())});
  }

  // Puts a value where the document is being built, and gives its address.
  Json* place(Json item) {
    if (place_ == Place::vocabulary) {
      throw input_error(
          str_cat(where_, ": model.vocab: an id should be an integer, is ", item.type_name()));
    }
    if (place_ != Place::document) bad_merge();
    require_input(!(in_model() && key_ == "merges"), where_,
                  ": model.merges should be an array, is ", item.type_name());
    if (stack_.empty()) {
      file_.document = std::move(item);
      return &file_.document;
    }
    Json& parent = *stack_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(item));
      return &parent.back();
    }
    return &(parent[key_] = std::move(item));
  }
  bool value(Json item) {
    place(std::move(item));
    return true;
  }
  bool open(Json container) {
    require_input(stack_.size() < max_depth, where_, ": is nested too deeply");
    if (stack_.size() == 1) outer_key_ = key_;
    stack_.push_back(place(std::move(container)));
    return true;
  }
  bool close() {
    stack_.pop_back();
    return true;
  }

  TokenizerFile& file_;
  const std::string& where_;
  Place place_ = Place::document;
  std::vector<Json*> stack_;  // the open containers; a parent does not grow while a child is open
  std::string key_;
  std::string outer_key_;
  std::size_t start_ = 0;
  std::size_t middle_ = 0;
  int halves_ = 0;
};

}  // namespace

TokenizerFile read_tokenizer_file(std::string_view text, Spelling spelling,
                                  const std::string& where) {
  TokenizerFile file;
  file.vocabulary = Vocabulary(spelling);
  Handler handler(file, where);
  Json::sax_parse(text, &handler);
  return file;
}

}  // namespace onset
