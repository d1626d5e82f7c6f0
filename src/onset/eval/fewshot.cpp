#include "onset/eval/fewshot.h"

#include <algorithm>

#include "onset/base/error.h"

namespace onset {

FewshotPicker::FewshotPicker(FewshotSampler sampler, std::size_t pool, bool own, std::uint64_t seed)
    : sampler_(sampler), pool_(pool), own_(own), random_(seed) {}

std::vector<std::size_t> FewshotPicker::pick(std::size_t count,
                                             const std::function<bool(std::size_t)>& is_document,
                                             const std::string& what) {
  std::vector<std::size_t> picked;
  if (count == 0) return picked;
  const auto others = [&] {
    std::vector<std::size_t> rows;
    for (std::size_t i = 0; i < pool_; ++i) {
      if (!is_document(i)) rows.push_back(i);
    }
    if (rows.size() < count) {
      const std::size_t left_out = pool_ - rows.size();
      throw usage_error(
          str_cat(what, ": ", count, " examples are asked for, and ", rows.size(), " are there",
                  left_out > 0 ? str_cat(" beside the document itself (", pool_, " rows)") : ""),
          "give a smaller --num-fewshot, or the task's file a smaller fewshot.count");
    }
    return rows;
  };
  if (sampler_ == FewshotSampler::first_n) {
    picked = others();
    picked.resize(count);
    return picked;
  }
  const std::size_t wanted = own_ ? count + 1 : count;
  if (wanted <= pool_) picked = random_.sample(pool_, wanted);
  std::erase_if(picked, is_document);
  if (picked.size() < count) {
    const auto rows = others();
    picked.clear();
    for (const std::size_t i : random_.sample(rows.size(), count)) picked.push_back(rows[i]);
  }
  picked.resize(count);
  return picked;
}

}  // namespace onset
