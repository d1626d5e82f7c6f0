#include "generated.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/wemask/mask_json.h"
#include "text.h"

namespace onset::app {
namespace {

std::string fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(hash));
  return digits.data();
}

OrderedJson alternatives_json(const std::vector<TokenLogprob>& top) {
  OrderedJson rows = OrderedJson::array();
  for (const auto& [id, logprob] : top) {
    rows.push_back({{"id", id}, {"logprob", finite_or_null(logprob)}});
  }
  return rows;
}

// Bytes of the longest beginning of the line that fits, cut behind a space where there is one.
std::size_t fitting(std::string_view line, std::size_t width) {
  std::size_t at = 0;
  std::size_t columns = 0;
  std::size_t space = 0;
  while (at < line.size()) {
    std::size_t next = at + 1;
    while (next < line.size() && (static_cast<unsigned char>(line[next]) & 0xC0U) == 0x80) ++next;
    columns += display_width(line.substr(at, next - at));
    if (columns > width) return space > 0 ? space : std::max(at, std::size_t{1});
    at = next;
    if (line[at - 1] == ' ') space = at;
  }
  return at;
}

// Lines of at most `width` columns; the text's own line breaks and indentation stay.
std::vector<std::string> lines_of(const std::string& text, std::size_t width) {
  std::vector<std::string> lines;
  for (std::string line : split(text, '\n')) {
    for (auto tab = line.find('\t'); tab != std::string::npos; tab = line.find('\t')) {
      line.replace(tab, 1, "    ");
    }
    do {
      const auto taken = fitting(line, width);
      lines.push_back(line.substr(0, taken));
      line.erase(0, taken);
    } while (!line.empty());
  }
  return lines;
}

}  // namespace

void GeneratedSample::add(const GenerationUpdate& update) {
  tokens.insert(tokens.end(), update.tokens.begin(), update.tokens.end());
  text += update.text;
  if (!update.finish) return;
  finish = update.finish;
  error = update.error;
}

OrderedJson mask_identity(const MaskSpec* mask) {
  if (mask == nullptr) return nullptr;
  OrderedJson json = mask_json(*mask);
  OrderedJson identity{{"id", fnv1a(json.dump())}};
  for (const char* listed : {"format", "model", "dims"}) json.erase(listed);
  identity.update(json);
  return identity;
}

OrderedJson logprobs_json(const GeneratedSample& sample) {
  OrderedJson rows = OrderedJson::array();
  for (const auto& token : sample.tokens) {
    rows.push_back({{"id", token.id},
                    {"piece", valid_utf8(token.bytes)},
                    {"logprob", finite_or_null(token.logprob)},
                    {"sampled_logprob", finite_or_null(token.sampled_logprob)},
                    {"top", alternatives_json(token.top)}});
  }
  return rows;
}

void RowsInOrder::put(std::size_t index, const OrderedJson& row) {
  rows_[index] = row.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
  for (; written_ < rows_.size() && rows_[written_]; ++written_) {
    writer_.write(*rows_[written_]);
    writer_.flush();
    rows_[written_]->clear();
    rows_[written_]->shrink_to_fit();
  }
}

std::string terminal_text(std::string_view text, bool utf8) {
  std::string shown;
  while (!text.empty()) {
    const auto plain = std::min(text.find_first_of("\n\t"), text.size());
    shown += printable(text.substr(0, plain), utf8);
    if (plain == text.size()) break;
    shown += text[plain];
    text.remove_prefix(plain + 1);
  }
  return shown;
}

std::string side_by_side(const std::string& left_title, std::string_view left,
                         const std::string& right_title, std::string_view right, std::size_t width,
                         bool utf8) {
  constexpr std::size_t narrowest = 72;
  const std::string gap = utf8 ? " \u2502 " : " | ";
  if (width < narrowest) {
    return str_cat("-- ", left_title, "\n", terminal_text(left, utf8), "\n-- ", right_title, "\n",
                   terminal_text(right, utf8), "\n");
  }
  const std::size_t column = (width - 3) / 2;
  std::vector<std::string> lefts{left_title};
  std::vector<std::string> rights{right_title};
  for (auto& line : lines_of(terminal_text(left, utf8), column)) lefts.push_back(line);
  for (auto& line : lines_of(terminal_text(right, utf8), column)) rights.push_back(line);
  std::string text;
  for (std::size_t i = 0; i < std::max(lefts.size(), rights.size()); ++i) {
    text += pad_right(i < lefts.size() ? lefts[i] : "", column) + gap;
    text += (i < rights.size() ? rights[i] : "") + "\n";
  }
  return text;
}

}  // namespace onset::app
