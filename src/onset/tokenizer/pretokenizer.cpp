#include "onset/tokenizer/pretokenizer.h"

#include <algorithm>
#include <utility>

#include "onset/tokenizer/joins.h"

namespace onset {
namespace {

struct Stretch {
  std::size_t start;
  std::size_t end;
  bool match;
};

std::vector<Regex::Match> find_literal(std::string_view text, std::string_view literal) {
  std::vector<Regex::Match> matches;
  if (literal.empty()) return matches;
  for (std::size_t at = text.find(literal); at != std::string_view::npos;
       at = text.find(literal, at + literal.size())) {
    matches.push_back({at, at + literal.size()});
  }
  return matches;
}

// Matches and what lies between them, in order.
std::vector<Stretch> stretches_of(const PretokenizerStep& step, std::string_view text) {
  const auto matches = step.regex               ? step.regex->find_all(text)
                       : step.finder != nullptr ? step.finder(text)
                                                : find_literal(text, step.literal);
  std::vector<Stretch> stretches;
  std::size_t at = 0;
  for (const auto& match : matches) {
    if (match.start > at) stretches.push_back({at, match.start, step.invert});
    stretches.push_back({match.start, match.end, !step.invert});
    at = match.end;
  }
  if (at < text.size()) stretches.push_back({at, text.size(), step.invert});
  return stretches;
}

// Joins neighbours as the behaviour says; the kinds of the reference's NormalizedString::split.
std::vector<Stretch> joined(const std::vector<Stretch>& stretches, SplitBehavior behavior) {
  std::vector<Stretch> result;
  bool previous_match = false;
  for (const Stretch& next : stretches) {
    bool join = false;
    if (!result.empty()) {
      if (behavior == SplitBehavior::contiguous) join = next.match == previous_match;
      if (behavior == SplitBehavior::merged_with_previous) join = next.match && !previous_match;
    }
    previous_match = next.match;
    if (join) {
      result.back().end = next.end;
    } else {
      result.push_back(next);
    }
  }
  return result;
}

std::vector<Stretch> joined_with_next(const std::vector<Stretch>& stretches) {
  std::vector<Stretch> result;
  bool next_match = false;
  for (std::size_t i = stretches.size(); i-- > 0;) {
    if (stretches[i].match && !next_match && !result.empty()) {
      result.back().start = stretches[i].start;
    } else {
      result.push_back(stretches[i]);
    }
    next_match = stretches[i].match;
  }
  std::reverse(result.begin(), result.end());
  return result;
}

// One piece through one step, appended to `out` and `ends`. False when its beginning is left out.
bool split_piece(const PretokenizerStep& step, std::string_view piece, std::string& out,
                 std::vector<std::size_t>& ends) {
  auto stretches = stretches_of(step, piece);
  stretches = step.behavior == SplitBehavior::merged_with_next ? joined_with_next(stretches)
                                                               : joined(stretches, step.behavior);
  for (const Stretch& stretch : stretches) {
    const bool removed = step.behavior == SplitBehavior::removed && stretch.match;
    if (removed || stretch.start == stretch.end) continue;
    out.append(piece, stretch.start, stretch.end - stretch.start);
    ends.push_back(out.size());
  }
  return stretches.empty() || !stretches.front().match || step.behavior != SplitBehavior::removed;
}

void metaspace(const PretokenizerStep& step, std::string_view piece, bool first, std::string& out,
               std::vector<std::size_t>& ends) {
  const std::size_t start = out.size();
  const bool prefix =
      step.prefix == PrefixScheme::always || (step.prefix == PrefixScheme::first && first);
  if (prefix && piece.front() != ' ' && !piece.starts_with(step.metaspace)) out += step.metaspace;
  for (const char byte : piece) {
    if (byte == ' ') {
      out += step.metaspace;
    } else {
      out += byte;
    }
  }
  if (out.size() > start) ends.push_back(out.size());
}

void prefix_space(std::string_view piece, std::string& out, std::vector<std::size_t>& ends) {
  if (piece.front() != ' ') out += ' ';
  out.append(piece);
  ends.push_back(out.size());
}

}  // namespace

std::string_view Pretokenizer::run(std::string_view text, Scratch& scratch, bool first) const {
  scratch.ends.clear();
  if (text.empty()) return text;
  scratch.ends.push_back(text.size());
  for (const auto& step : steps) {
    scratch.other_ends.clear();
    scratch.other.clear();
    std::size_t start = 0;
    bool first_left = first;
    for (const std::size_t end : scratch.ends) {
      const std::string_view piece = text.substr(start, end - start);
      if (step.known != nullptr) {
        step.known->split(piece, start, scratch.other_ends);
      } else if (step.joins != nullptr) {
        step.joins->split(piece, start, scratch.other_ends);
      } else if (step.add_prefix_space) {
        prefix_space(piece, scratch.other, scratch.other_ends);
      } else if (!step.metaspace.empty()) {
        metaspace(step, piece, first && start == 0, scratch.other, scratch.other_ends);
      } else {
        const bool kept = split_piece(step, piece, scratch.other, scratch.other_ends);
        if (start == 0) first_left = first && kept;
      }
      start = end;
    }
    first = first_left;
    std::swap(scratch.ends, scratch.other_ends);
    if (step.known == nullptr && step.joins == nullptr) {
      std::swap(scratch.text, scratch.other);
      text = scratch.text;
    }
  }
  return text;
}

}  // namespace onset
