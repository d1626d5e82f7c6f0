#include "onset/eval/math_unit.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <unordered_map>
#include <utility>
#include <vector>

#include "onset/base/strings.h"
#include "onset/eval/letter_case.h"

namespace onset {
namespace {

const std::unordered_map<std::string_view, std::string_view>& spellings() {
  static const std::unordered_map<std::string_view, std::string_view> table = {
      {"in", "inch"},
      {"inch", "inch"},
      {"inches", "inch"},
      {"ft", "foot"},
      {"foot", "foot"},
      {"feet", "foot"},
      {"yd", "yard"},
      {"yard", "yard"},
      {"yards", "yard"},
      {"mi", "mile"},
      {"mile", "mile"},
      {"miles", "mile"},
      {"mm", "millimeter"},
      {"millimeter", "millimeter"},
      {"millimeters", "millimeter"},
      {"cm", "centimeter"},
      {"centimeter", "centimeter"},
      {"centimeters", "centimeter"},
      {"centimetre", "centimeter"},
      {"centimetres", "centimeter"},
      {"m", "meter"},
      {"meter", "meter"},
      {"meters", "meter"},
      {"metre", "meter"},
      {"metres", "meter"},
      {"km", "kilometer"},
      {"kilometer", "kilometer"},
      {"kilometers", "kilometer"},
      {"kilometre", "kilometer"},
      {"kilometres", "kilometer"},
      {"mg", "milligram"},
      {"g", "gram"},
      {"gram", "gram"},
      {"grams", "gram"},
      {"kg", "kilogram"},
      {"kilogram", "kilogram"},
      {"kilograms", "kilogram"},
      {"lb", "pound"},
      {"lbs", "pound"},
      {"pound", "pound"},
      {"pounds", "pound"},
      {"oz", "ounce"},
      {"ounce", "ounce"},
      {"ounces", "ounce"},
      {"ml", "milliliter"},
      {"milliliters", "milliliter"},
      {"l", "liter"},
      {"liter", "liter"},
      {"liters", "liter"},
      {"litres", "liter"},
      {"gallon", "gallon"},
      {"gallons", "gallon"},
      {"s", "second"},
      {"sec", "second"},
      {"secs", "second"},
      {"second", "second"},
      {"seconds", "second"},
      {"min", "minute"},
      {"mins", "minute"},
      {"minute", "minute"},
      {"minutes", "minute"},
      {"h", "hour"},
      {"hr", "hour"},
      {"hrs", "hour"},
      {"hour", "hour"},
      {"hours", "hour"},
      {"day", "day"},
      {"days", "day"},
      {"week", "week"},
      {"weeks", "week"},
      {"month", "month"},
      {"months", "month"},
      {"year", "year"},
      {"years", "year"},
      {"yr", "year"},
      {"dollar", "dollar"},
      {"dollars", "dollar"},
      {"usd", "dollar"},
      {"cent", "cent"},
      {"cents", "cent"},
      {"euro", "euro"},
      {"euros", "euro"},
      {"deg", "degree"},
      {"degree", "degree"},
      {"degrees", "degree"},
      {"rad", "radian"},
      {"radian", "radian"},
      {"radians", "radian"},
      {"percent", "percent"},
      {"percents", "percent"},
      {"unit", "unit"},
      {"units", "unit"},
      {"people", "people"}};
  return table;
}

// Two units in one word.
std::string_view written_out(std::string_view word) {
  if (word == "mph") return "mile per hour";
  if (word == "kph" || word == "kmh") return "kilometer per hour";
  return word;
}

constexpr std::array not_in_units = {
    std::string_view("or"),   std::string_view("and"),           std::string_view("more"),
    std::string_view("less"), std::string_view("not"),           std::string_view("than"),
    std::string_view("at"),   std::string_view("about"),         std::string_view("least"),
    std::string_view("most"), std::string_view("approximately"), std::string_view("no"),
    std::string_view("if"),   std::string_view("where"),         std::string_view("for"),
    std::string_view("is"),   std::string_view("factorial"),     std::string_view("half"),
    std::string_view("plus"), std::string_view("minus"),         std::string_view("mod"),
    std::string_view("base")};

std::string singular(std::string_view word) {
  const auto drop = [&](std::size_t count) {
    return std::string(word.substr(0, word.size() - count));
  };
  if (word.size() > 3 && word.ends_with("ies")) return drop(3) + "y";
  for (const std::string_view ending : {"ches", "shes", "xes", "sses"}) {
    if (word.ends_with(ending)) return drop(2);
  }
  if (word.size() > 2 && word.ends_with("s") && !word.ends_with("ss")) return drop(1);
  return std::string(word);
}

// The words of a unit; '/' and '^' are words of their own.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) words.push_back(std::exchange(word, {}));
  };
  for (const char c : text) {
    if (c == '/' || c == '^') {
      end_word();
      words.emplace_back(1, c);
    } else if (c == ' ' || c == '-' || c == '(' || c == ')' || c == '{' || c == '}') {
      end_word();
    } else if (c != '.' && c != ',') {
      word += c;
    }
  }
  end_word();
  return words;
}

int power_word(std::string_view word) {
  if (word == "square" || word == "sq" || word == "squared") return 2;
  if (word == "cubic" || word == "cu" || word == "cubed") return 3;
  return 1;
}

}  // namespace

std::string unit_spelling(std::string_view text) {
  std::string lower = lower_case(trim(text));
  for (const std::string_view both : {"mph", "kph", "kmh"}) {
    if (lower == both) lower = written_out(both);
  }
  const std::vector<std::string> words = words_of(lower);
  std::vector<std::pair<std::string, int>> factors;
  int sign = 1;
  int next_power = 1;
  const auto no_unit = [&] { return std::string(1, '?').append(lower); };
  constexpr std::size_t most_words = 9;  // "square feet per square mile per day"
  if (words.size() > most_words) return no_unit();
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (std::find(not_in_units.begin(), not_in_units.end(), word) != not_in_units.end()) {
      return no_unit();
    }
    const int power = power_word(word);
    if (word == "/" || word == "per") {
      sign = -1;
    } else if (word == "^") {
      if (i + 1 < words.size() && !factors.empty() && words[i + 1].size() == 1 &&
          words[i + 1][0] >= '1' && words[i + 1][0] <= '9') {
        factors.back().second *= words[i + 1][0] - '0';
      }
      ++i;
    } else if (power > 1 && word.ends_with("ed")) {
      if (factors.empty()) return no_unit();  // "5 squared"
      factors.back().second *= power;
    } else if (power > 1) {
      next_power = power;
    } else {
      const auto known = spellings().find(word);
      factors.emplace_back(known == spellings().end() ? singular(word) : known->second,
                           sign * std::exchange(next_power, 1));
    }
  }
  if (next_power > 1 || (factors.empty() && !words.empty())) return no_unit();
  std::string spelled;
  for (const auto& [name, power] : factors) {
    if (!spelled.empty()) spelled += power < 0 ? "/" : " ";
    spelled += name;
    const int size = power < 0 ? -power : power;
    if (size > 1) spelled.append("^").append(std::to_string(size));
  }
  return spelled;
}

std::string scale_digits(std::string_view word) {
  static const std::unordered_map<std::string_view, std::string_view> scales = {
      {"hundred", "100"},        {"thousand", "1000"},          {"million", "1000000"},
      {"billion", "1000000000"}, {"trillion", "1000000000000"}, {"dozen", "12"}};
  const auto found = scales.find(word);
  return found == scales.end() ? std::string() : std::string(found->second);
}

bool is_unit_word(std::string_view word) {
  if (word == "mph" || word == "kph" || word == "kmh" || word == "sq" || word == "square" ||
      word == "cubic") {
    return true;
  }
  return word.size() > 1 && spellings().contains(word);
}

bool units_fit(std::string_view a, std::string_view b) {
  if (a == b) return true;
  if (a.empty()) return !b.starts_with('?');
  return b.empty() && !a.starts_with('?');
}

}  // namespace onset
