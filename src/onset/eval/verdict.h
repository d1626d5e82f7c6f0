// What a grader says of an answer. Torch-free.
#pragma once

#include <string_view>

namespace onset {

enum class Verdict {
  equal,      // the answer is the gold one
  different,  // it is another, or nothing that can be read
  no_answer,  // there is none
};

// "equal", "different", "no_answer".
[[nodiscard]] constexpr std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::equal:
      return "equal";
    case Verdict::different:
      return "different";
    case Verdict::no_answer:
      return "no_answer";
  }
  return "";
}

}  // namespace onset
