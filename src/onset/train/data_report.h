// What became of a file's rows, to be said before a run. Torch-free.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace onset {

struct DataReport {
  std::string where;               // the file
  std::int64_t rows = 0;           // read
  std::int64_t kept = 0;           // became examples
  std::int64_t dropped = 0;        // left out: nothing to train was left, or the prompt is too long
  std::int64_t cut = 0;            // kept, but longer than max_length
  std::int64_t tokens_cut = 0;     // that those lost
  std::int64_t equal = 0;          // pairs whose completions are the same: nothing to prefer
  std::int64_t joined = 0;         // prompts whose end is other tokens when the completion follows
  std::int64_t straddling = 0;     // trained tokens that also hold bytes of what is not trained
  std::int64_t tokens = 0;         // of what was kept
  std::int64_t trained = 0;        // of them
  std::int64_t longest = 0;        // tokens of the longest that was kept
  std::set<std::string> unread{};  // columns that nothing reads

  // A paragraph: "data.jsonl: 1,000 rows, 990 kept; .. 41.3 % of 123,456 tokens are trained."
  [[nodiscard]] std::string text() const;
};

}  // namespace onset
