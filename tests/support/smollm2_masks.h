// The masks of tests/data/smollm2 (sinks.json, perplexity.json) on the demonstration model.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "onset/base/file.h"
#include "onset/model/hooks.h"
#include "onset/model/model.h"
#include "onset/wemask/mask.h"
#include "support/support.h"
#include "support/tensors.h"

namespace onset::testing {

class Smollm2Masks : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto path = demo_model();
    const auto orders = shared_fixture("smollm2/mask_orders.safetensors");
    if (path.empty()) GTEST_SKIP() << "the demonstration model is not there: run scripts/setup";
    if (orders.empty()) {
      GTEST_SKIP() << "shared/fixtures/smollm2/mask_orders.safetensors is not beside the checkout";
    }
    model_.emplace(Model::open(path, {.residency = Residency::resident}));
    orders_.emplace(orders);
  }

  // {"m": 12, "k": 58, "criterion": "random", "seed": 0}.
  [[nodiscard]] MaskSpec mask(const OrderedJson& config) const {
    const auto criterion = config.at("criterion").get<std::string>();
    MaskOptions options{.k = config.at("k").get<std::int64_t>(),
                        .from_layer = config.at("m").get<std::int64_t>()};
    if (criterion == "activation") options.criterion = MaskCriterion::activation;
    if (criterion == "lowest_weight") options.criterion = MaskCriterion::lowest;
    if (criterion == "random") {
      options.criterion = MaskCriterion::given;
      options.given = listed("random_order_seed" + config.at("seed").dump(), options);
    }
    MaskSpec spec = make_mask(*model_, options);
    if (criterion == "weight") {
      EXPECT_EQ(spec.dims, listed("weight_order", options)) << "the reference's order";
    }
    return spec;
  }

  // The names of the masks that begin so: "weight_m12_k58" of "weight".
  [[nodiscard]] static std::vector<std::string> names_of(const OrderedJson& configs,
                                                         const std::string& criterion) {
    std::vector<std::string> names;
    for (const auto& [name, config] : configs.items()) {
      const bool masked = !config.at("mask").is_null();
      if (masked && config.at("mask").at("criterion") == criterion) names.push_back(name);
    }
    return names;
  }

  std::optional<Model> model_;

 private:
  [[nodiscard]] std::map<std::int64_t, std::vector<std::int64_t>> listed(
      const std::string& order, const MaskOptions& options) const {
    const at::Tensor dims = orders_->get(order).to(at::kLong);  // [L, D]
    std::map<std::int64_t, std::vector<std::int64_t>> result;
    for (std::int64_t l = *options.from_layer; l < dims.size(0); ++l) {
      const at::Tensor row = dims[l].narrow(0, 0, *options.k).contiguous();
      result[l].assign(row.const_data_ptr<std::int64_t>(),
                       row.const_data_ptr<std::int64_t>() + row.numel());
    }
    return result;
  }

  std::optional<ReferenceTensors> orders_;
};

}  // namespace onset::testing
