// A mixture of the fixtures with a super expert planted into it; for tests with torch.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <map>
#include <string>
#include <vector>

#include "onset/model/decoder.h"
#include "support/planted_row.h"
#include "support/support.h"

namespace onset::testing {

class SuperExpertModel {
 public:
  // The first token's last expert in the planted layer gets the row.
  explicit SuperExpertModel(const std::string& fixture) {
    const auto source = onset::testing::data("models/" + fixture);
    observe(source);
    plant_row(source, folder_.path(), expert_, row_for_first(products_.at(expert_), planted_value));
  }

  [[nodiscard]] const std::filesystem::path& path() const { return folder_.path(); }
  [[nodiscard]] std::int64_t expert() const { return expert_; }
  // What it adds to the first token's entry.
  [[nodiscard]] float adds() const { return planted_value * weight_; }

 private:
  // The first token's experts, their weights, and the products of all tokens sent to them.
  void observe(const std::filesystem::path& source) {
    const c10::InferenceMode inference;
    const Model model = Model::open(source);
    Hooks hooks(model.config().layer_count());
    hooks.observe(
        SiteSet::parse("layers.1.router,layers.1.experts.*.product", model.config()),
        [&](const SiteContext& context, const at::Tensor& tensor) {
          if (context.site.kind == SiteKind::router_experts) {
            expert_ = tensor[0][-1].item<std::int64_t>();
          }
          if (context.site.kind == SiteKind::router_weights) weight_ = tensor[0][-1].item<float>();
          if (context.site.kind == SiteKind::expert_product && context.rows.front() == 0) {
            auto& rows = products_[context.site.expert];
            for (std::int64_t r = 0; r < tensor.size(0); ++r) {
              const at::Tensor row = tensor[r].to(at::kFloat).contiguous();
              rows.emplace_back(row.const_data_ptr<float>(),
                                row.const_data_ptr<float>() + row.numel());
            }
          }
        });
    const std::vector<SequenceInput> batch{{.ids = planted_prompt, .cache = nullptr}};
    static_cast<void>(model.decoder().forward(batch, LogitRows::none, &hooks));
  }

  TemporaryFolder folder_;
  std::int64_t expert_ = -1;
  float weight_ = 0;
  std::map<std::int64_t, std::vector<std::vector<float>>> products_;
};

}  // namespace onset::testing
