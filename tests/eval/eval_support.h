// What the tests of the evaluation engine share: a small random model whose tokens are bytes and a
// few words, items for it, and their scores by full passes over one sequence at a time.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "onset/eval/encoding.h"
#include "onset/eval/engine.h"
#include "onset/model/model.h"
#include "onset/tokenizer/tokenizer.h"
#include "onset/wemask/mask.h"
#include "support/support.h"
#include "support/toy.h"
#include "tokenizer/small_tokenizer.h"

namespace onset::testing {

// A Llama of two layers. Ids 0 to 255 are the bytes, then the merges; then <s> (BOS, not put before
// texts unless asked for) and </s>.
class SmallModel {
 public:
  explicit SmallModel(Compute compute = Compute::f32, std::int64_t context = 0);

  [[nodiscard]] const Model& model() const { return *model_; }
  [[nodiscard]] const Tokenizer& tokenizer() const { return *tokenizer_; }
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_.path(); }
  [[nodiscard]] std::int64_t bos() const { return bos_; }

 private:
  TemporaryFolder folder_;
  std::int64_t bos_ = 0;
  std::optional<Model> model_;
  std::optional<Tokenizer> tokenizer_;
};

// Items with examples that they share, with and without long choices, some of which begin alike.
[[nodiscard]] std::vector<EvalItem> choice_items();
[[nodiscard]] std::vector<EvalItem> generation_items(std::int64_t count = 5);

// Of each of the item's choices: the whole sequence in a pass of its own, the log-softmax of its
// rows in float64.
struct PlainScore {
  double loglik = 0;
  bool greedy = true;
};
[[nodiscard]] std::vector<PlainScore> plain_scores(const SmallModel& small, const EvalItem& item,
                                                   const MaskSpec* mask = nullptr);
[[nodiscard]] std::shared_ptr<const MaskSpec> small_mask(const SmallModel& small,
                                                         MaskOptions options = {});

}  // namespace onset::testing
