// Which part of a completion is its answer. Torch-free.
//
// All of these read the completion alone, never the prompt, in one pass over its bytes: completions
// come from a model and may be anything. Views point into the text given.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace onset {

// The text before the first of some stop strings (empty ones stop nothing).
[[nodiscard]] std::string_view cut_at_stop(std::string_view text,
                                           std::span<const std::string> stop);

// What follows the last </think>. None while a <think> is open behind it: the model never came to
// its answer. `opened`: the prompt ended inside a thinking block, as some chat formats write it.
[[nodiscard]] std::optional<std::string_view> after_thinking(std::string_view completion,
                                                             bool opened = false);

// Without fenced code (``` or ~~~ at the start of a line, up to the fence that closes it or the
// end).
[[nodiscard]] std::string without_code_blocks(std::string_view text);

// What the last \boxed{..} or \fbox{..} holds, with balanced braces (\{ and \} are none). A box
// inside a box is part of it. Without braces, "\boxed 5", it holds what comes before the next white
// space or $. None when there is no box, and when the last is not closed or holds nothing.
[[nodiscard]] std::optional<std::string_view> last_box(std::string_view text);

// What the last formula \[..\], \(..\), $..$ or $$..$$ holds; none when there is none, or it holds
// nothing.
[[nodiscard]] std::optional<std::string_view> last_formula(std::string_view text);

}  // namespace onset
