#include "onset/model/recorded_attention.h"

#include <ATen/ATen.h>

#include "onset/kernels/gradient.h"
#include "onset/kernels/packed_attention.h"
#include "onset/model/attention.h"

namespace onset {
namespace {

// All at once where there are enough sequences for the threads, else one after the other.
at::Tensor attended(const AttentionStates& states, const std::vector<AttendedRows>& sequences,
                    double scale, std::int64_t window) {
  const auto& [q, k, v] = states;
  at::Tensor out = at::empty({q.size(0), q.size(1), v.size(2)}, q.options());
  std::vector<PackedQueries> packed;
  for (const AttendedRows& rows : sequences) {
    const KeySegment own{.keys = k.const_data_ptr<float>() + rows.first * k.stride(0),
                         .values = v.const_data_ptr<float>() + rows.first * v.stride(0),
                         .count = rows.count,
                         .key_step = k.stride(0),
                         .value_step = v.stride(0),
                         .key_group = k.stride(1),
                         .value_group = v.stride(1)};
    packed.push_back({.row = rows.first, .count = rows.count, .seen = {own}});
  }
  const PackedAttention attention{
      .groups = v.size(1), .value_dim = v.size(2), .window = window, .scale = scale};
  if (sequences.size() > 1 && suits_packed_attention(packed, attention)) {
    attend_packed(q, packed, attention, out);
    return out;
  }
  for (const AttendedRows& rows : sequences) {
    const auto own = [&](const at::Tensor& t) { return t.narrow(0, rows.first, rows.count); };
    own(out).copy_(fused_attention({.q = own(q),
                                    .k = own(k).transpose(0, 1),
                                    .v = own(v).transpose(0, 1),
                                    .scale = scale,
                                    .window = window}));
  }
  return out;
}

}  // namespace

at::Tensor recorded_attention(const AttentionStates& states,
                              const std::vector<AttendedRows>& sequences, double scale,
                              std::int64_t window) {
  const AttentionStates whole{
      .q = states.q.contiguous(), .k = states.k.contiguous(), .v = states.v.contiguous()};
  const std::vector<at::Tensor> inputs{whole.q, whole.k, whole.v};
  return with_gradient(inputs, inputs,
                       {.forward = [&] { return attended(whole, sequences, scale, window); },
                        .backward =
                            [sequences, scale, window](const GradientCall& call) {
                              const AttentionStates found = attention_gradients(
                                  call.output_gradient.contiguous(),
                                  {.q = call.saved[0], .k = call.saved[1], .v = call.saved[2]},
                                  sequences, scale, window);
                              return std::vector<at::Tensor>{found.q, found.k, found.v};
                            }});
}

}  // namespace onset
