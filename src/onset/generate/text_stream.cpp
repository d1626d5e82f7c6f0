#include "onset/generate/text_stream.h"

#include <algorithm>
#include <utility>

namespace onset {
namespace {

// Whether bytes end in a sequence of UTF-8 that further bytes could complete.
bool ends_inside_character(std::string_view bytes) {
  const std::size_t longest = std::min<std::size_t>(bytes.size(), 3);
  for (std::size_t back = 1; back <= longest; ++back) {
    const auto byte = static_cast<unsigned char>(bytes[bytes.size() - back]);
    if (byte < 0x80) return false;
    if (byte < 0xC0) continue;
    const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
    return back < length;
  }
  return false;
}

}  // namespace

StopFinder::StopFinder(std::vector<std::string> stop) : stop_(std::move(stop)) {
  std::erase_if(stop_, [](const std::string& text) { return text.empty(); });
}

std::string StopFinder::push(std::string_view text) {
  if (found_) return {};
  held_ += text;
  // The stop string that ends first, of those the longest.
  std::size_t end = std::string::npos;
  std::size_t start = 0;
  for (const std::string& stop : stop_) {
    const std::size_t at = held_.find(stop);
    if (at == std::string::npos) continue;
    const std::size_t its_end = at + stop.size();
    if (its_end < end || (its_end == end && at < start)) {
      end = its_end;
      start = at;
    }
  }
  if (end != std::string::npos) {
    found_ = true;
    held_.resize(start);
    return std::exchange(held_, {});
  }
  const std::size_t kept = held_back();
  std::string certain = held_.substr(0, held_.size() - kept);
  held_.erase(0, held_.size() - kept);
  return certain;
}

std::string StopFinder::finish() { return std::exchange(held_, {}); }

// The longest end of what is held that a stop string begins with.
std::size_t StopFinder::held_back() const {
  std::size_t longest = 0;
  for (const std::string& stop : stop_) {
    for (std::size_t n = std::min(stop.size() - 1, held_.size()); n > longest; --n) {
      if (std::string_view(held_).ends_with(std::string_view(stop).substr(0, n))) longest = n;
    }
  }
  return longest;
}

std::vector<TokenId> text_anchor(const Tokenizer& tokenizer) {
  for (std::int64_t id = 0; id < tokenizer.vocabulary_size(); ++id) {
    if (!tokenizer.contains(id)) continue;
    const auto token = static_cast<TokenId>(id);
    if (tokenizer.is_special(token) || tokenizer.is_byte(token)) continue;
    const std::string text = tokenizer.decode(std::vector<TokenId>{token});
    const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    });
    if (plain && tokenizer.decode(std::vector<TokenId>{token, token}).starts_with(text)) {
      return {token};
    }
  }
  return {};
}

TextStream::TextStream(const Tokenizer& tokenizer, std::span<const std::int64_t> prompt,
                       bool show_special, std::vector<std::string> stop)
    : tokenizer_(&tokenizer), show_special_(show_special), stops_(std::move(stop)) {
  std::vector<TokenId> shown;
  for (const std::int64_t id : prompt) {
    if (is_shown(id)) shown.push_back(static_cast<TokenId>(id));
  }
  begun_ = !tokenizer.decode(shown).empty();
  anchor_ = begun_ ? text_anchor(tokenizer) : std::move(shown);
}

bool TextStream::is_shown(std::int64_t id) const {
  return tokenizer_->contains(id) &&
         (show_special_ || !tokenizer_->is_special(static_cast<TokenId>(id)));
}

std::string TextStream::decode_pending() const {
  std::vector<TokenId> ids = anchor_;
  ids.insert(ids.end(), pending_.begin(), pending_.end());
  return tokenizer_->decode(ids).substr(tokenizer_->decode(anchor_).size());
}

std::string TextStream::push(std::int64_t id) {
  if (stops_.found() || !is_shown(id)) return {};
  const auto token = static_cast<TokenId>(id);
  pending_.push_back(token);
  if (tokenizer_->is_byte(token)) return {};
  std::string bytes;
  for (const TokenId one : pending_) bytes += tokenizer_->piece_bytes(one);
  if (ends_inside_character(bytes)) return {};
  const std::string text = decode_pending();
  if (text.empty() && !begun_) return {};
  if (!begun_) anchor_ = text_anchor(*tokenizer_);
  begun_ = true;
  pending_.clear();
  return stops_.push(text);
}

std::string TextStream::finish() {
  if (stops_.found()) return {};
  std::string text = stops_.push(pending_.empty() ? std::string() : decode_pending());
  pending_.clear();
  return stops_.found() ? text : text + stops_.finish();
}

}  // namespace onset
