#include "onset/eval/same_answer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <ctime>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/eval/answer_text.h"
#include "onset/eval/math_parser.h"
#include "onset/eval/math_token.h"
#include "support/support.h"

namespace onset {
namespace {

struct Pair {
  std::string verdict;
  std::string gold;
  std::string answer;
};

std::vector<std::string> lines_of(std::string_view file) {
  std::ifstream in(testing::data(file));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<Pair> answer_pairs() {
  constexpr std::string_view middle = " ::: ";
  std::vector<Pair> pairs;
  for (const std::string& line : lines_of("eval/answer_pairs.txt")) {
    if (line.empty() || line.front() == '#') continue;
    const std::size_t space = line.find(' ');
    const std::size_t at = line.find(middle);
    pairs.push_back({line.substr(0, space),
                     std::string(trim(std::string_view(line).substr(space, at - space))),
                     line.substr(at + middle.size())});
  }
  return pairs;
}

TEST(SameAnswer, TheTableOfPairsHolds) {
  const std::vector<Pair> pairs = answer_pairs();
  ASSERT_GE(pairs.size(), 300U);
  for (const Pair& pair : pairs) {
    EXPECT_EQ(name_of(same_answer(pair.gold, pair.answer)), pair.verdict)
        << pair.gold << "   " << pair.answer;
  }
}

TEST(SameAnswer, OrderOfTheTwoDoesNotMatter) {
  for (const Pair& pair : answer_pairs()) {
    if (pair.verdict == "no_answer") continue;
    EXPECT_EQ(name_of(same_answer(pair.answer, pair.gold)), pair.verdict)
        << pair.answer << "   " << pair.gold;
  }
}

TEST(SameAnswer, EveryAnswerEqualsItself) {
  for (const Pair& pair : answer_pairs()) {
    EXPECT_EQ(same_answer(pair.gold, pair.gold), Verdict::equal) << pair.gold;
    if (pair.verdict == "no_answer") continue;
    EXPECT_EQ(same_answer(pair.answer, pair.answer), Verdict::equal) << pair.answer;
  }
}

// All distinct gold answers of MATH-500.
TEST(SameAnswer, GoldAnswersAreUnderstoodAndEqualThemselvesInAnotherDress) {
  const std::vector<std::string> golds = lines_of("eval/math500_golds.txt");
  ASSERT_GT(golds.size(), 200U);
  for (const std::string& gold : golds) {
    const auto tokens = math_tokens(gold);
    ASSERT_TRUE(tokens) << gold;
    EXPECT_TRUE(parse_math(*tokens)) << gold;
    EXPECT_EQ(same_answer(gold, "$" + gold + "$."), Verdict::equal) << gold;
    EXPECT_EQ(same_answer(gold, "{ " + gold + " }"), Verdict::equal) << gold;
    EXPECT_EQ(same_answer(gold, R"(\boxed{\displaystyle )" + gold + "}"), Verdict::equal) << gold;
  }
}

// Among them these alone say the same twice: a unit or sign more, another order, another spelling.
TEST(SameAnswer, GoldAnswersDifferFromEachOther) {
  const std::vector<std::string> golds = lines_of("eval/math500_golds.txt");
  std::vector<std::string> same;
  for (std::size_t i = 0; i < golds.size(); ++i) {
    for (std::size_t j = i + 1; j < golds.size(); ++j) {
      if (same_answer(golds[i], golds[j]) == Verdict::equal)
        same.push_back(golds[i] + " | " + golds[j]);
    }
  }
  const std::vector<std::string> expected = {
      "5 | x=5",           "15 | 15\\mbox{ cm}^2",    "30 | 30^\\circ",          "36 | \\$36",
      "36 | 36^\\circ",    "90 | 90^\\circ",          "120 | 120^\\circ",        "-2,1 | 1,-2",
      "10080 | 10,\\!080", "\\frac14 | \\frac{1}{4}", "2\\sqrt{5} | 2 \\sqrt{5}"};
  EXPECT_EQ(same, expected);
}

// CASES.md, row 19.
TEST(SameAnswer, BoxesOfTheCompletionAreGraded) {
  const auto graded = [](std::string_view gold, std::string_view completion) {
    return same_answer(gold, last_box(completion).value_or(""));
  };
  EXPECT_EQ(graded("1/3", R"(so \boxed{\frac{1}{2}})"), Verdict::different);
  EXPECT_EQ(graded("1/2", R"(so \boxed{\frac{1}{2}})"), Verdict::equal);
  EXPECT_EQ(graded("18", R"(\boxed{})"), Verdict::no_answer);
  EXPECT_EQ(graded("18", R"(\boxed{1})"), Verdict::different);
  EXPECT_EQ(graded("18", "I do not know."), Verdict::no_answer);
  EXPECT_EQ(graded(R"(\frac{1}{2})", R"(\[ \boxed{\dfrac12} \])"), Verdict::equal);
  EXPECT_EQ(graded("18", R"(\boxed{1} no, \boxed{18})"), Verdict::equal);
  EXPECT_EQ(graded("18", R"(\boxed{18} no, \boxed{1})"), Verdict::different);
  EXPECT_EQ(graded("18", R"(\boxed{18} no, \boxed{1)"), Verdict::no_answer);
}

std::string repeated(std::string_view text, std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

std::vector<std::string> hostile_answers() {
  constexpr std::size_t many = 100'000;
  std::vector<std::string> answers = {"9^{9^{9}}",
                                      "9^{9^{9^{9^{9}}}}",
                                      "10^{10^{100}}",
                                      "2^{1000000}",
                                      "(1+10^{-9})^{10^{18}}",
                                      "99999999999999999999!",
                                      "400!!",
                                      "1000!/999!",
                                      R"(\binom{100000000}{50000000})",
                                      R"(\sin 10^{4000})",
                                      R"(e^{e^{e^{e^{e}}}})",
                                      R"(x^{x^{x^{x^{x^{x}}}}})",
                                      R"(0.\overline{)" + std::string(3000, '3') + "}",
                                      std::string(1'000'000, '9'),
                                      str_cat("0.", std::string(1'000'000, '3')),
                                      std::string(4000, '9') + "^" + "9",
                                      std::string(1000, '9') + "/" + std::string(1000, '7'),
                                      std::string(many, '{'),
                                      std::string(many, '}'),
                                      std::string(2000, '{') + std::string(2000, '}'),
                                      std::string(2000, '(') + "1" + std::string(2000, ')'),
                                      std::string(many, '-'),
                                      std::string(4000, '-') + "1",
                                      std::string(4000, '!'),
                                      std::string(4000, '|'),
                                      std::string(4000, '$'),
                                      std::string(4000, '\\'),
                                      str_cat("x", std::string(3000, '\'')),
                                      std::string(many, '\0')};
  std::string points = "x<0";
  std::string sines = "1";
  std::string signs = "1";
  for (int i = 0; i < 650; ++i) points.append(", x=").append(std::to_string(i));
  for (int i = 0; i < 90; ++i) sines.append(R"(, \sin )").append(std::to_string(i)).append("x");
  for (int i = 0; i < 24; ++i) signs.append(R"(, \pm x \pm )").append(std::to_string(i));
  for (std::string* list : {&points, &sines, &signs}) answers.push_back(std::move(*list));
  for (const std::string_view part : {R"(\frac)",
                                      R"(\frac{)",
                                      R"(\frac12)",
                                      R"(\sqrt)",
                                      R"(\sqrt{)",
                                      R"(\sqrt[)",
                                      "^",
                                      "_",
                                      "^{",
                                      "1^",
                                      "x_",
                                      R"(\sin)",
                                      R"(\sin x+)",
                                      R"(\sin(x)^)",
                                      R"(1\frac{)",
                                      R"(1\frac12)",
                                      R"(\pm 1)",
                                      R"(\pm 1,)",
                                      "1,",
                                      "x,",
                                      R"(\{)",
                                      R"(\{1,)",
                                      "[1,",
                                      R"(\text{)",
                                      R"(\text{a})",
                                      R"(\left()",
                                      R"(\begin{pmatrix})",
                                      R"(\begin{pmatrix}1\\)",
                                      "1&",
                                      "x<",
                                      "x=1,",
                                      "x<1,",
                                      "x>1 or ",
                                      R"((0,1)\cup)",
                                      R"(\binom{9}{4}+)",
                                      R"(\binom{x}{99}+)",
                                      "999!+",
                                      "300!+",
                                      "x^x+",
                                      "2^{x}",
                                      R"(\log_2)",
                                      R"(\overline{)",
                                      R"(\vec)",
                                      "1/",
                                      "x/",
                                      "(x)",
                                      "ab",
                                      "a b ",
                                      R"(1\,)",
                                      "1 ",
                                      "1{,}000",
                                      "5 cm ",
                                      "apples ",
                                      R"(\$)",
                                      "%",
                                      ":",
                                      "1:",
                                      "1.5e9",
                                      "12_3",
                                      R"(\boxed{)",
                                      R"(\boxed)",
                                      R"(\boxed )",
                                      R"(\mathbb{R}\setminus)",
                                      "|x|",
                                      "|",
                                      R"(\lfloor)",
                                      "\xff",
                                      "é",
                                      "√"}) {
    answers.push_back(repeated(part, many / part.size()));
    answers.push_back(repeated(part, 4090 / part.size()));
    answers.push_back(repeated(part, 4000 / part.size()) + "1");
  }
  return answers;
}

// Of this process alone, whatever else the machine does.
double milliseconds_since(std::clock_t start) {
  return 1000.0 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

// The time is that of one answer; an ordinary one takes microseconds.
TEST(SameAnswer, HostileAnswersEndInMilliseconds) {
  constexpr double limit_ms = 50;
  const std::vector<std::string> golds = {"18", R"(\frac{\sin x}{2})", "(-\\infty, 2) \\cup (3, 5]",
                                          "1, 2, 3"};
  for (const std::string& answer : hostile_answers()) {
    for (const std::string& gold : golds) {
      const std::clock_t start = std::clock();
      const Verdict verdict = same_answer(gold, answer);
      const double took = milliseconds_since(start);
      EXPECT_NE(verdict, Verdict::equal) << gold << "   " << answer.substr(0, 60);
      EXPECT_LT(took, limit_ms) << gold << "   " << answer.substr(0, 60);
    }
    const std::clock_t start = std::clock();
    (void)same_answer(answer, answer + " + 1");
    const std::string boxed = R"(\boxed{)" + answer;
    (void)last_box(boxed);
    (void)last_formula(boxed);
    (void)without_code_blocks(boxed);
    const double took = milliseconds_since(start);
    EXPECT_LT(took, limit_ms) << answer.substr(0, 60);
  }
}

// Bytes and scraps of LaTeX in any order are read or refused, and equal themselves.
TEST(SameAnswer, AnythingAtAllIsJudged) {
  const std::vector<std::string> scraps = {"\\frac",
                                           "\\sqrt",
                                           "{",
                                           "}",
                                           "(",
                                           ")",
                                           "[",
                                           "]",
                                           "\\{",
                                           "\\}",
                                           "1",
                                           "12",
                                           "0.5",
                                           "x",
                                           "y",
                                           "i",
                                           "\\pi",
                                           "^",
                                           "_",
                                           "+",
                                           "-",
                                           "*",
                                           "/",
                                           "=",
                                           "<",
                                           "\\le",
                                           ",",
                                           ";",
                                           "\\pm",
                                           "!",
                                           "%",
                                           "^\\circ",
                                           "\\text{cm}",
                                           "cm",
                                           " ",
                                           "\\sin",
                                           "\\log",
                                           "|",
                                           "\\cup",
                                           "\\infty",
                                           "\\in",
                                           "\\$",
                                           "&",
                                           "\\\\",
                                           "\\begin{pmatrix}",
                                           "\\end{pmatrix}",
                                           "\\binom",
                                           "\\mathbb{R}",
                                           "and",
                                           "or",
                                           ":",
                                           "\\lfloor",
                                           "\\rfloor",
                                           "\xC3",
                                           "\xE2\x88\x9A",
                                           std::string(1, '\0'),
                                           "~",
                                           "\\boxed{",
                                           "e",
                                           "\\setminus"};
  std::uint64_t state = 1;
  const auto draw = [&](std::size_t below) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::size_t>(state >> 33) % below;
  };
  const auto text = [&] {
    std::string made;
    for (std::size_t i = draw(14); i > 0; --i) made += scraps[draw(scraps.size())];
    return made;
  };
  std::size_t equal = 0;
  constexpr int rounds = 20'000;
  for (int round = 0; round < rounds; ++round) {
    const std::string a = text();
    const std::string b = text();
    const Verdict forth = same_answer(a, b);
    const Verdict back = same_answer(b, a);
    if (forth != Verdict::no_answer && back != Verdict::no_answer) {
      EXPECT_EQ(forth, back) << a << "   " << b;
    }
    const Verdict itself = same_answer(a, a);
    EXPECT_NE(itself, Verdict::different) << a;
    if (itself == Verdict::equal) ++equal;
  }
  EXPECT_GT(equal, rounds / 2U);
}

TEST(SameWords, CaseAndPunctuationAreForgiven) {
  EXPECT_EQ(same_words("\\text{East}", "east."), Verdict::equal);
  EXPECT_EQ(same_words("yes", "Yes!"), Verdict::equal);
  EXPECT_EQ(same_words("yes", "yes, no"), Verdict::different);
  EXPECT_EQ(same_words("yes", ""), Verdict::no_answer);
}

TEST(SameChoice, TheLetterCounts) {
  for (const std::string_view answer :
       {"B", "b", "(B)", "B.", "\\text{(B)}", "\\textbf{(B)}\\ 12", "(B) 12", "B: 12", "**B**"}) {
    EXPECT_EQ(same_choice("B", answer), Verdict::equal) << answer;
  }
  for (const std::string_view answer : {"A", "Because", "12", "AB", "(C)", "?"}) {
    EXPECT_EQ(same_choice("B", answer), Verdict::different) << answer;
  }
  EXPECT_EQ(same_choice("B", " "), Verdict::no_answer);
}

}  // namespace
}  // namespace onset
