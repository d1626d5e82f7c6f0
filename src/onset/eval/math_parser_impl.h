// The parser's class, shared by the sources that define its parts. Not for users of math_parser.h.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onset/eval/math_parser.h"

namespace onset {

// Every function reads from the present token on and gives the node it made; none when the tokens
// do not fit, and then the whole answer cannot be read.
class MathParser {
 public:
  using Node = std::optional<std::size_t>;

  explicit MathParser(std::vector<MathToken> tokens) : tokens_(std::move(tokens)) {}
  [[nodiscard]] std::optional<MathTree> run();

 private:
  static constexpr int max_depth = 64;
  static constexpr std::size_t max_nodes = 8192;
  static constexpr int max_chain = 64;  // of operators that nest to the left

  // Counts how deep functions nest, so that no answer can exhaust the stack.
  class Nesting {
   public:
    explicit Nesting(int& depth) : depth_(depth) { ++depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    ~Nesting() { --depth_; }
    [[nodiscard]] bool too_deep() const { return depth_ > max_depth; }

   private:
    int& depth_;
  };

  // math_parser.cpp: from lists to products
  [[nodiscard]] Node list();
  [[nodiscard]] Node item();
  [[nodiscard]] Node words(std::size_t end);
  [[nodiscard]] Node with_unit_of_value(std::size_t node, std::size_t end);
  [[nodiscard]] Node with_scale(std::size_t node);
  [[nodiscard]] Node with_unit(std::size_t expression, std::size_t end);
  [[nodiscard]] Node label(std::size_t end);
  [[nodiscard]] Node relation(std::size_t end);
  [[nodiscard]] Node join();
  [[nodiscard]] Node ratio();
  [[nodiscard]] Node sum();
  [[nodiscard]] Node signed_product();
  [[nodiscard]] Node product();
  [[nodiscard]] Node signed_power();
  [[nodiscard]] Node power();
  [[nodiscard]] Node postfix();

  // math_primary.cpp: what products are made of
  [[nodiscard]] Node primary();
  [[nodiscard]] Node number();
  [[nodiscard]] Node mixed_number(std::size_t whole);
  [[nodiscard]] bool plain_arguments() const;
  [[nodiscard]] Node based(const std::string& digits);
  [[nodiscard]] Node letter();
  [[nodiscard]] Node word();
  [[nodiscard]] Node accent();
  [[nodiscard]] Node command();
  [[nodiscard]] Node fraction();
  [[nodiscard]] Node square_root();
  [[nodiscard]] Node function(const std::string& name);
  [[nodiscard]] Node function_argument();
  [[nodiscard]] Node matrix(bool is_determinant);
  [[nodiscard]] Node symbol();
  [[nodiscard]] Node brackets();
  [[nodiscard]] Node set();
  [[nodiscard]] Node group();
  [[nodiscard]] Node between(std::string_view close, std::string_view function);
  // One argument of a command: a group, or one primary.
  [[nodiscard]] Node argument();
  // The spelling of a group or of one token, as part of a name.
  [[nodiscard]] std::optional<std::string> name_part();

  [[nodiscard]] bool at_end() const { return at_ >= tokens_.size(); }
  [[nodiscard]] const MathToken& peek(std::size_t ahead = 0) const {
    static const MathToken none{TokenKind::symbol, "", false};
    return at_ + ahead < tokens_.size() ? tokens_[at_ + ahead] : none;
  }
  bool accept(std::string_view symbol_text) {
    if (!peek().is(symbol_text)) return false;
    ++at_;
    return true;
  }
  [[nodiscard]] bool at_separator() const;
  // Consumes separators that follow each other ("," "and"); which of them counts.
  [[nodiscard]] std::string separators();
  [[nodiscard]] bool starts_factor() const;
  [[nodiscard]] bool is_unit_here() const;
  // Where the item that begins here ends: at a separator or a bracket that closes.
  [[nodiscard]] std::size_t item_end() const;
  [[nodiscard]] bool is_words(std::size_t end) const;

  Node make(MathKind kind, std::vector<std::size_t> children = {}, std::string text = {});

  std::vector<MathToken> tokens_;
  std::size_t at_ = 0;
  MathTree tree_;
  int depth_ = 0;
  int bars_ = 0;             // open |
  bool in_builder_ = false;  // a ':' divides the set being read, and is no ratio
};

}  // namespace onset
