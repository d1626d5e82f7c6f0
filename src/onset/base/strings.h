// Text for messages: quoted names, counts, and the nearest of the names that exist.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace onset {

// The text in double quotes, as messages show names that come from a file: bad UTF-8 becomes
// U+FFFD, control characters, quotes and backslashes are escaped, and what is longer than
// `max_bytes` is cut and ends in "...".
[[nodiscard]] std::string quote(std::string_view text, std::size_t max_bytes = 160);

// The beginning of UTF-8 text: at most `max_bytes`, and no part of a character at its end.
[[nodiscard]] std::string_view whole_characters(std::string_view text, std::size_t max_bytes);

// "134,515,008".
[[nodiscard]] std::string grouped(std::int64_t count);
// "1 row", "2,000 rows".
[[nodiscard]] std::string counted(std::int64_t count, std::string_view singular);
[[nodiscard]] std::string counted(std::int64_t count, std::string_view singular,
                                  std::string_view plural);

// Levenshtein distance in bytes: insertions, deletions and replacements, each one step.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidates nearest to `wanted`, nearest first (ties in the order given), at most `max`; only
// those within a third of its length (at least 2 steps), so that nothing far-fetched is proposed.
[[nodiscard]] std::vector<std::string> nearest(std::string_view wanted,
                                               const std::vector<std::string>& candidates,
                                               std::size_t max = 3);

// "did you mean "a", "b"?" for an error's hint; empty when `names` is.
[[nodiscard]] std::string did_you_mean(const std::vector<std::string>& names);

// Parts between separators; "a,,b" has an empty part, "" has one empty part.
[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);
// Without the ASCII white space at both ends.
[[nodiscard]] std::string_view trim(std::string_view text);
[[nodiscard]] std::string join(const std::vector<std::string>& parts, std::string_view separator);

}  // namespace onset
