#include "onset/eval/math_names.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

using Names = std::unordered_map<std::string_view, std::string_view>;

constexpr std::array functions = {
    std::string_view("sin"),    std::string_view("cos"),    std::string_view("tan"),
    std::string_view("cot"),    std::string_view("sec"),    std::string_view("csc"),
    std::string_view("arcsin"), std::string_view("arccos"), std::string_view("arctan"),
    std::string_view("sinh"),   std::string_view("cosh"),   std::string_view("tanh"),
    std::string_view("log"),    std::string_view("ln"),     std::string_view("exp"),
    std::string_view("abs"),    std::string_view("lg")};

constexpr std::array greek = {
    std::string_view("alpha"),    std::string_view("beta"),    std::string_view("gamma"),
    std::string_view("delta"),    std::string_view("epsilon"), std::string_view("zeta"),
    std::string_view("eta"),      std::string_view("theta"),   std::string_view("iota"),
    std::string_view("kappa"),    std::string_view("lambda"),  std::string_view("mu"),
    std::string_view("nu"),       std::string_view("xi"),      std::string_view("rho"),
    std::string_view("sigma"),    std::string_view("tau"),     std::string_view("upsilon"),
    std::string_view("phi"),      std::string_view("chi"),     std::string_view("psi"),
    std::string_view("omega"),    std::string_view("Gamma"),   std::string_view("Delta"),
    std::string_view("Theta"),    std::string_view("Lambda"),  std::string_view("Xi"),
    std::string_view("Sigma"),    std::string_view("Phi"),     std::string_view("Psi"),
    std::string_view("Omega"),    std::string_view("ell"),     std::string_view("varepsilon"),
    std::string_view("vartheta"), std::string_view("varphi"),  std::string_view("pi")};

const Names& symbols() {
  static const Names names = {{"cdot", "*"},
                              {"times", "*"},
                              {"ast", "*"},
                              {"div", "/"},
                              {"le", "<="},
                              {"leq", "<="},
                              {"leqslant", "<="},
                              {"ge", ">="},
                              {"geq", ">="},
                              {"geqslant", ">="},
                              {"lt", "<"},
                              {"gt", ">"},
                              {"ne", "!="},
                              {"neq", "!="},
                              {"approx", "~"},
                              {"sim", "~"},
                              {"simeq", "~"},
                              {"in", "in"},
                              {"cup", "cup"},
                              {"cap", "cap"},
                              {"setminus", "setminus"},
                              {"backslash", "setminus"},
                              {"pm", "pm"},
                              {"mp", "mp"},
                              {"infty", "infty"},
                              {"infinity", "infty"},
                              {"circ", "circ"},
                              {"degree", "deg"},
                              {"degrees", "deg"},
                              {"emptyset", "emptyset"},
                              {"varnothing", "emptyset"},
                              {"mid", "mid"},
                              {"vert", "|"},
                              {"lvert", "|"},
                              {"rvert", "|"},
                              {"lfloor", "lfloor"},
                              {"rfloor", "rfloor"},
                              {"lceil", "lceil"},
                              {"rceil", "rceil"},
                              {"langle", "langle"},
                              {"rangle", "rangle"},
                              {"lbrace", "\\{"},
                              {"rbrace", "\\}"},
                              {"lbrack", "["},
                              {"rbrack", "]"},
                              {"lparen", "("},
                              {"rparen", ")"},
                              {"colon", ":"},
                              {"prime", "'"},
                              {"choose", "choose"},
                              {"over", "over"},
                              {"percent", "%"},
                              {"lor", "or"},
                              {"vee", "or"},
                              {"land", "and"},
                              {"wedge", "and"},
                              {"cr", "\\\\"},
                              {"newline", "\\\\"}};
  return names;
}

const Names& commands() {
  static const Names names = {{"frac", "frac"},    {"dfrac", "frac"},  {"tfrac", "frac"},
                              {"cfrac", "frac"},   {"binom", "binom"}, {"dbinom", "binom"},
                              {"tbinom", "binom"}, {"sqrt", "sqrt"}};
  return names;
}

constexpr std::array accents = {std::string_view("vec"),       std::string_view("hat"),
                                std::string_view("bar"),       std::string_view("overline"),
                                std::string_view("tilde"),     std::string_view("widehat"),
                                std::string_view("dot"),       std::string_view("overrightarrow"),
                                std::string_view("angle"),     std::string_view("triangle"),
                                std::string_view("underline"), std::string_view("mathbb")};

constexpr std::array layout = {
    std::string_view("left"),         std::string_view("right"),     std::string_view("big"),
    std::string_view("Big"),          std::string_view("bigg"),      std::string_view("Bigg"),
    std::string_view("bigl"),         std::string_view("bigr"),      std::string_view("Bigl"),
    std::string_view("Bigr"),         std::string_view("biggl"),     std::string_view("biggr"),
    std::string_view("Biggl"),        std::string_view("Biggr"),     std::string_view("middle"),
    std::string_view("displaystyle"), std::string_view("textstyle"), std::string_view("quad"),
    std::string_view("qquad"),        std::string_view("boxed"),     std::string_view("fbox"),
    std::string_view("limits"),       std::string_view("nolimits"),  std::string_view("rm"),
    std::string_view("thinspace"),    std::string_view("mathstrut"), std::string_view("space"),
    std::string_view("ensuremath")};

constexpr std::array text_commands = {
    std::string_view("text"),    std::string_view("mbox"),         std::string_view("textrm"),
    std::string_view("textbf"),  std::string_view("textit"),       std::string_view("texttt"),
    std::string_view("textsf"),  std::string_view("hbox"),         std::string_view("mathrm"),
    std::string_view("mathbf"),  std::string_view("mathit"),       std::string_view("mathsf"),
    std::string_view("mathcal"), std::string_view("boldsymbol"),   std::string_view("bm"),
    std::string_view("emph"),    std::string_view("operatorname"), std::string_view("textnormal")};

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::optional<std::string_view> look_up(const Names& names, std::string_view name) {
  const auto found = names.find(name);
  if (found == names.end()) return std::nullopt;
  return found->second;
}

MathToken token(TokenKind kind, std::string_view text) { return {kind, std::string(text), false}; }

// Signs of Unicode and what stands for them.
const std::unordered_map<char32_t, std::string_view>& signs() {
  static const std::unordered_map<char32_t, std::string_view> table = {{U'−', "-"},
                                                                       {U'–', "-"},
                                                                       {U'‐', "-"},
                                                                       {U'×', "\\times "},
                                                                       {U'·', "\\cdot "},
                                                                       {U'⋅', "\\cdot "},
                                                                       {U'∙', "\\cdot "},
                                                                       {U'÷', "\\div "},
                                                                       {U'∕', "/"},
                                                                       {U'⁄', "/"},
                                                                       {U'±', "\\pm "},
                                                                       {U'∓', "\\mp "},
                                                                       {U'π', "\\pi "},
                                                                       {U'∞', "\\infty "},
                                                                       {U'√', "\\sqrt "},
                                                                       {U'°', "\\degree "},
                                                                       {U'≤', "<="},
                                                                       {U'≥', ">="},
                                                                       {U'≠', "!="},
                                                                       {U'≈', "\\approx "},
                                                                       {U'∈', "\\in "},
                                                                       {U'∪', "\\cup "},
                                                                       {U'∩', "\\cap "},
                                                                       {U'∅', "\\emptyset "},
                                                                       {U'²', "^2"},
                                                                       {U'³', "^3"},
                                                                       {U'¹', "^1"},
                                                                       {U'⁴', "^4"},
                                                                       {U'⁵', "^5"},
                                                                       {U'⁶', "^6"},
                                                                       {U'⁷', "^7"},
                                                                       {U'⁸', "^8"},
                                                                       {U'⁹', "^9"},
                                                                       {U'₂', "_2"},
                                                                       {U'₃', "_3"},
                                                                       {U'₄', "_4"},
                                                                       {U'₅', "_5"},
                                                                       {U'₆', "_6"},
                                                                       {U'₇', "_7"},
                                                                       {U'₈', "_8"},
                                                                       {U'₉', "_9"},
                                                                       {U'½', "\\frac{1}{2}"},
                                                                       {U'⅓', "\\frac{1}{3}"},
                                                                       {U'⅔', "\\frac{2}{3}"},
                                                                       {U'¼', "\\frac{1}{4}"},
                                                                       {U'¾', "\\frac{3}{4}"},
                                                                       {U'α', "\\alpha "},
                                                                       {U'β', "\\beta "},
                                                                       {U'γ', "\\gamma "},
                                                                       {U'δ', "\\delta "},
                                                                       {U'θ', "\\theta "},
                                                                       {U'λ', "\\lambda "},
                                                                       {U'μ', "\\mu "},
                                                                       {U'σ', "\\sigma "},
                                                                       {U'φ', "\\phi "},
                                                                       {U'ω', "\\omega "},
                                                                       {U'ℝ', "\\mathbb{R}"},
                                                                       {U'∠', "\\angle "},
                                                                       {U'€', "\\text{euros}"},
                                                                       {U'£', "\\text{sterling}"},
                                                                       {U'′', "'"},
                                                                       {U'’', "'"},
                                                                       {U'‘', "'"},
                                                                       {U'“', "\""},
                                                                       {U'”', "\""},
                                                                       {U'\u00A0', " "},
                                                                       {U'\u2009', "\\,"},
                                                                       {U'\u202F', "\\,"},
                                                                       {U'\u2003', " "},
                                                                       {U'\u200B', ""},
                                                                       {U'\u3000', " "},
                                                                       {U'，', ","},
                                                                       {U'（', "("},
                                                                       {U'）', ")"},
                                                                       {U'＝', "="},
                                                                       {U'。', "."}};
  return table;
}

}  // namespace

std::optional<MathToken> token_of_command(std::string_view name) {
  if (const auto symbol = look_up(symbols(), name)) return token(TokenKind::symbol, *symbol);
  if (const auto command = look_up(commands(), name)) return token(TokenKind::command, *command);
  if (is_function(name)) return token(TokenKind::command, name);
  if (contains(greek, name)) {
    // Two shapes of one letter.
    if (name.starts_with("var")) name.remove_prefix(3);
    return token(TokenKind::letter, name);
  }
  if (contains(accents, name)) return token(TokenKind::accent, name);
  return std::nullopt;
}

std::optional<MathToken> token_of_word(std::string_view word) {
  if (is_function(word)) return token(TokenKind::command, word);
  if (word == "sqrt") return token(TokenKind::command, word);
  if (word == "pi" || word == "theta") return token(TokenKind::letter, word);
  if (word == "inf" || word == "infty" || word == "infinity" || word == "Infinity") {
    return token(TokenKind::symbol, "infty");
  }
  if (word == "and" || word == "or") return token(TokenKind::symbol, word);
  return std::nullopt;
}

bool is_layout(std::string_view command) { return contains(layout, command); }
bool takes_text(std::string_view command) { return contains(text_commands, command); }
bool is_function(std::string_view name) { return contains(functions, name); }

std::string ascii_math(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const DecodedChar c = decode_char(text, at);
    const auto sign = c.code < 0x80 ? signs().end() : signs().find(c.code);
    if (sign == signs().end()) {
      result += text.substr(at, c.length);
    } else {
      result += sign->second;
    }
    at += c.length;
  }
  return result;
}

}  // namespace onset
