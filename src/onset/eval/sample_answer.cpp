#include "onset/eval/sample_answer.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "onset/base/error.h"
#include "onset/base/strings.h"

namespace onset {
namespace {

const Json& member(const Json& object, const std::string& name) {
  static const Json none;
  if (!object.is_object()) return none;
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}

std::string text_of(const Json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// lm-eval writes numbers of `resps` as texts.
std::optional<double> number_of(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Argument `j` of request `i`: an object of objects, or a list of lists.
std::string argument(const Json& line, std::size_t i, std::size_t j) {
  const Json& arguments = member(line, "arguments");
  if (arguments.is_array()) {
    const bool there = i < arguments.size() && arguments[i].is_array() && j < arguments[i].size();
    return there ? text_of(arguments[i][j]) : "";
  }
  return text_of(member(member(arguments, str_cat("gen_args_", i)), str_cat("arg_", j)));
}

// The log-likelihoods of the choices; empty where the answer is no choice.
std::vector<double> choice_logliks(const Json& line) {
  const Json& answers = member(line, "filtered_resps");
  std::vector<double> logliks;
  if (!answers.is_array() || answers.size() < 2) return {};
  for (const Json& answer : answers) {
    const auto loglik =
        answer.is_array() && answer.size() == 2 ? number_of(answer[0]) : std::nullopt;
    if (!loglik) return {};
    logliks.push_back(*loglik);
  }
  return logliks;
}

double length_of(std::string_view text, const std::string& metric) {
  if (metric == "acc_bytes") return static_cast<double>(text.size());
  if (metric != "acc_norm") return 1;
  double characters = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U) ++characters;
  }
  return characters;
}

std::string choice_text(const Json& line, std::size_t choice) {
  const std::string text = argument(line, choice, 1);
  const std::string shown(trim(text));
  return shown.empty() ? str_cat("(", choice, ")") : str_cat("(", choice, ") ", shown);
}

std::string question_of(const Json& line) {
  const std::string prompt = argument(line, 0, 0);
  const std::string_view text = trim(prompt);
  const std::size_t gap = text.rfind("\n\n");
  return std::string(gap == std::string_view::npos ? text : trim(text.substr(gap)));
}

}  // namespace

SampleAnswer sample_answer(const Json& line, const std::string& metric) {
  SampleAnswer result{
      .question = question_of(line), .target = text_of(member(line, "target")), .answer = {}};
  const std::vector<double> logliks = choice_logliks(line);
  if (logliks.empty()) {
    const Json* answer = &member(line, "filtered_resps");
    while (answer->is_array() && !answer->empty()) answer = &answer->front();
    result.answer = answer->is_array() ? "" : text_of(*answer);
    return result;
  }
  std::size_t chosen = 0;
  double best = -HUGE_VAL;
  for (std::size_t i = 0; i < logliks.size(); ++i) {
    const std::string text = argument(line, i, 1);
    const double score = logliks[i] / std::fmax(1, length_of(trim(text), metric));
    if (score > best) {
      best = score;
      chosen = i;
    }
  }
  result.answer = choice_text(line, chosen);
  const auto gold = number_of(member(line, "target"));
  if (gold && *gold >= 0 && *gold < static_cast<double>(logliks.size())) {
    result.target = choice_text(line, static_cast<std::size_t>(*gold));
  }
  return result;
}

}  // namespace onset
