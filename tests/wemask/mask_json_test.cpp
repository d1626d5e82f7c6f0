#include "onset/wemask/mask_json.h"

#include <gtest/gtest.h>

#include "onset/model/model.h"
#include "onset/wemask/mask.h"
#include "support/support.h"

namespace onset::testing {
namespace {

Model open_model(const char* name) {
  return Model::open(onset::testing::data(std::string("models/") + name));
}

TEST(MaskJson, ComesBackAsItWas) {
  const Model model = open_model("llama_me");
  for (const MaskCriterion criterion : {MaskCriterion::weight, MaskCriterion::random,
                                        MaskCriterion::activation, MaskCriterion::lowest}) {
    const MaskSpec spec = make_mask(model, {.criterion = criterion,
                                            .tokens = MaskTokens::massive,
                                            .gamma = 0.75,
                                            .rate = 0.1,
                                            .from_layer = 1,
                                            .seed = 9,
                                            .massive_dims = {3, 5}});
    const OrderedJson written = mask_json(spec);
    EXPECT_EQ(mask_json(parse_mask(Json::parse(written.dump()), "x")), written);
  }
}

// FNV-1a of the bytes of 1.0F, 00 00 80 3F, by the published definition.
TEST(MaskJson, GainsAreHashedAsDocumented) {
  const Model model = open_model("llama_me");
  EXPECT_EQ(fingerprint(model).gains.size(), static_cast<std::size_t>(fingerprint(model).layers));
  EXPECT_EQ(mask_json(make_mask(model, {.k = 1, .from_layer = 1}))["model"]["gains"][0]
                .get<std::string>()
                .size(),
            16U);
}

class DamagedMask : public ::testing::Test {
 protected:
  [[nodiscard]] std::string refusal() const {
    return error_of([&] { static_cast<void>(parse_mask(json_, "mask.json")); });
  }
  Json json_ =
      Json::parse(mask_json(make_mask(open_model("llama_me"), {.k = 4, .from_layer = 1})).dump());
};

TEST_F(DamagedMask, IsRefusedWithTheFileTheKeyAndWhatWasExpected) {
  const std::vector<std::pair<Json, std::string>> patches{
      {Json{{"k", 0}}, "k is 0"},
      {Json{{"k", 5}}, "lists 4 dims, expected k = 5"},
      {Json{{"gamma", 2}}, "gamma is 2"},
      {Json{{"from_layer", -1}}, "layers -1 to"},
      {Json{{"to_layer", 99}}, "to 99"},
      {Json{{"criterion", "wieght"}}, "known are weight"},
      {Json{{"placement", 3}}, "placement"},
      {Json{{"format", "onset.wemask.9"}}, "expected onset.wemask.1"},
      {Json{{"sed", 1}}, "\"sed\" is not known"},
      {Json{{"seed", -1}}, "seed should be"},
      {Json{{"dims", Json::array()}}, "dims should be an object"},
      {Json{{"dims", Json::object()}}, "dims are listed for 0 layers"},
      {Json{{"dims", {{"1", {1, 2, 3, 4000}}}}}, "holds 4000"},
      {Json{{"dims", {{"1", {1, 2, 3, 1}}}}}, "dims of layer 1 hold one of them twice"},
      {Json{{"dims", {{"01", {1, 2, 3, 4}}}}}, "dims are listed for \"01\""},
      {Json{{"rate", 0}}, "rate is 0, expected above 0"},
      {Json{{"rate", 1.5}}, "rate is 1.5"},
      {Json{{"rate", -0.25}}, "rate is -0.25"},
      {Json{{"rate", 1}}, "but k is 4"},
      {Json{{"massive_threshold", 0}}, "massive_threshold is 0"},
      {Json{{"massive_threshold", -1}}, "massive_threshold is -1"},
      {Json{{"tokens", "massive"}}, "need massive_dims"},
      {Json{{"model", nullptr}}, "should be an object"},
  };
  const Json whole = json_;
  for (const auto& [patch, expected] : patches) {
    json_ = whole;
    json_.update(patch);
    EXPECT_NE(refusal().find(expected), std::string::npos) << expected << "; got " << refusal();
    EXPECT_NE(refusal().find("mask.json"), std::string::npos) << refusal();
  }
}

TEST_F(DamagedMask, AMissingKeyIsNamed) {
  for (const char* key : {"format", "model", "criterion", "k", "gamma", "dims", "seed"}) {
    Json damaged = json_;
    damaged.erase(key);
    EXPECT_NE(error_of([&] { static_cast<void>(parse_mask(damaged, "x")); }).find(key),
              std::string::npos);
  }
}

TEST(MakeMask, RefusesWhatMakesNoMask) {
  const Model model = open_model("llama_me");
  const auto refusal = [&](const MaskOptions& options) {
    return error_of([&] { static_cast<void>(make_mask(model, options)); });
  };
  EXPECT_NE(refusal({.k = 0, .from_layer = 1}).find("k is 0"), std::string::npos);
  EXPECT_NE(refusal({.k = 1000, .from_layer = 1}).find("expected 1 to"), std::string::npos);
  EXPECT_NE(refusal({.rate = 0.001, .from_layer = 1}).find("less than one dim"), std::string::npos);
  EXPECT_NE(refusal({.k = 4, .rate = 0.5, .from_layer = 1}).find("one of them"), std::string::npos);
  EXPECT_NE(refusal({.k = 4}).find("--from-layer"), std::string::npos);
  EXPECT_NE(refusal({.k = 4, .me_layer = fingerprint(model).layers - 1}).find("is the last"),
            std::string::npos);
  EXPECT_NE(refusal({.gamma = 1.5, .k = 4, .from_layer = 1}).find("gamma"), std::string::npos);
  EXPECT_NE(refusal({.criterion = MaskCriterion::given, .from_layer = 1}).find("no dims"),
            std::string::npos);
  const std::map<std::int64_t, std::vector<std::int64_t>> dims{{0, {1, 2}}, {1, {3, 4}}};
  EXPECT_NE(
      refusal({.criterion = MaskCriterion::given, .from_layer = 1, .to_layer = 1, .given = dims})
          .find("listed for layer 0, but the masked layers are 1 to 1"),
      std::string::npos);
  EXPECT_NE(
      refusal({.criterion = MaskCriterion::given, .from_layer = 0, .to_layer = 0, .given = dims})
          .find("listed for layer 1"),
      std::string::npos);
  EXPECT_NE(refusal({.tokens = MaskTokens::massive, .k = 4, .from_layer = 1}).find("massive"),
            std::string::npos);
  const Model olmo = open_model("olmo2");
  EXPECT_NE(error_of([&] {
              static_cast<void>(make_mask(olmo, {.k = 4, .from_layer = 1}));
            }).find("no norm before attention"),
            std::string::npos);
}

TEST(CheckMask, TellsAnotherModelFromOtherGains) {
  const Model model = open_model("llama_me");
  const MaskSpec spec = make_mask(model, {.k = 4, .from_layer = 1});
  EXPECT_TRUE(check_mask(spec, model).same_gains);
  EXPECT_NE(error_of([&] {
              static_cast<void>(check_mask(spec, open_model("qwen3_me")));
            }).find("another model"),
            std::string::npos);
  MaskSpec tuned = spec;
  tuned.model.gains.front() ^= 1U;
  const MaskFit fit = check_mask(tuned, model);
  EXPECT_FALSE(fit.same_gains);
  EXPECT_DOUBLE_EQ(fit.overlap.value_or(0), 1.0);
}

// llama.cpp's converter writes Mistral's models as general.architecture "llama".
TEST(CheckMask, AMaskOfMistralFitsItsGgufCopy) {
  const Model model = open_model("llama_me");
  MaskSpec spec = make_mask(model, {.k = 4, .from_layer = 1});
  spec.model.architecture = "mistral";
  EXPECT_TRUE(check_mask(spec, model).same_gains);
  spec.model.architecture = "qwen2";
  EXPECT_NE(error_of([&] {
              static_cast<void>(check_mask(spec, model, "a.json"));
            }).find("a.json: the mask was made for another model"),
            std::string::npos);
}

}  // namespace
}  // namespace onset::testing
