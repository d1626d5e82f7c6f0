// Which rows are the examples before a question. Torch-free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "onset/eval/python_random.h"
#include "onset/eval/task.h"

namespace onset {

// Draws examples for one document after the other; the random sampler's draws depend on how many
// documents came before, so that every document must be asked for, in order.
//
// The examples are those of lm-evaluation-harness: Python's random.sample from the pool, one
// generator for the task. Where the pool holds the documents themselves one more is drawn, and the
// document is left out. A document that turns up in another pool (a duplicate) is drawn again, from
// those that are not it; lm-eval keeps it.
class FewshotPicker {
 public:
  // `pool`: how many rows there are. `own`: the documents are among them.
  FewshotPicker(FewshotSampler sampler, std::size_t pool, bool own, std::uint64_t seed);

  // Indices of `count` rows of the pool; `is_document` tells whether a row is the document itself.
  // `what`: the task and the document, for messages. Throws a usage error where the pool has too
  // few others.
  [[nodiscard]] std::vector<std::size_t> pick(std::size_t count,
                                              const std::function<bool(std::size_t)>& is_document,
                                              const std::string& what);

 private:
  FewshotSampler sampler_;
  std::size_t pool_;
  bool own_;
  PythonRandom random_;
};

}  // namespace onset
