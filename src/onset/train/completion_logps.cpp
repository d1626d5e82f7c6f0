#include "onset/train/completion_logps.h"

#include <ATen/ATen.h>

#include "onset/model/placement.h"

namespace onset {

SftExample completion_example(const TokenIds& prompt, const TokenIds& completion) {
  SftExample example{.ids = prompt, .trained = std::vector<std::uint8_t>(prompt.size(), 0)};
  example.ids.insert(example.ids.end(), completion.begin(), completion.end());
  example.trained.resize(example.ids.size(), 1);
  return example;
}

std::vector<const SftExample*> pointers_to(std::span<const SftExample> examples) {
  std::vector<const SftExample*> pointers;
  for (const SftExample& example : examples) pointers.push_back(&example);
  return pointers;
}

SummedLogps summed_logps(const Policy& policy, std::span<const SftExample> examples,
                         const LogpOptions& options) {
  const at::Tensor values = policy.logps(pointers_to(examples), options).values;
  SummedLogps result;
  std::vector<std::int64_t> example_of;
  for (const SftExample& example : examples) {
    const std::int64_t count = trained_count(example);
    example_of.insert(example_of.end(), static_cast<std::size_t>(count),
                      static_cast<std::int64_t>(result.counts.size()));
    result.counts.push_back(count);
  }
  result.sums =
      at::zeros({static_cast<std::int64_t>(examples.size())}, values.options().requires_grad(false))
          .index_add(0, indices(example_of, values), values);
  return result;
}

}  // namespace onset
