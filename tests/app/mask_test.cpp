// onset mask: what it writes and prints, and calls that it refuses.

#include "app/program.h"
#include "onset/base/file.h"
#include "support/support.h"

namespace onset::testing {
namespace {

TEST(Mask, MakeFindsTheLayerBehindTheMeLayerAndShowReadsTheFile) {
  const TemporaryFolder folder;
  const auto file = (folder.path() / "wemask.json").string();
  // llama_me: a massive activation is planted in block 1 for token id 1 (tests/data/models).
  const auto made = run_onset(
      {"mask", "make", model_path("llama_me"), "--ids", "1,17,9,33", "-o", file, "--k", "4"});
  ASSERT_EQ(made.code, 0) << made.error;
  const OrderedJson mask = OrderedJson::parse(read_file(file));
  EXPECT_EQ(mask.at("format"), "onset.wemask.1");
  EXPECT_EQ(mask.at("from_layer"), 2);
  EXPECT_EQ(mask.at("k"), 4);
  EXPECT_TRUE(mask.at("rate").is_null());
  const auto shown =
      run_onset({"mask", "show", file, model_path("llama_me"), "--ids", "1,17,9,33", "--json"});
  ASSERT_EQ(shown.code, 0) << shown.error;
  const OrderedJson result = shown.json();
  EXPECT_EQ(result.at("mask"), mask);
  ASSERT_FALSE(result.at("layers").empty());
  for (const auto& row : result.at("layers")) {
    EXPECT_EQ(row.at("tokens"), 1);
    EXPECT_GT(row.at("energy_removed").get<double>(), 0.0);
    EXPECT_LE(row.at("energy_removed").get<double>(), 1.0);
  }
}

// All dims at gamma 1 take all of the energy, and are those of any other criterion.
TEST(Mask, AllDimsTakeAllOfTheEnergy) {
  const TemporaryFolder folder;
  const auto file = (folder.path() / "all.json").string();
  const auto made = run_onset({"mask", "make", model_path("llama_me"), "--ids", "1,17,9", "-o",
                               file, "--rate", "1", "--from-layer", "0", "--json"});
  ASSERT_EQ(made.code, 0) << made.error;
  const OrderedJson result = made.json();
  for (const auto& row : result.at("layers")) {
    EXPECT_NEAR(row.at("energy_removed").get<double>(), 1.0, 1e-9);
    EXPECT_EQ(row.at("activation_overlap"), 1.0);
  }
}

TEST(Mask, WrongUseIsRefusedAndLeavesNoFile) {
  const TemporaryFolder folder;
  const auto file = (folder.path() / "mask.json").string();
  const std::vector<std::pair<std::vector<std::string>, std::string>> calls{
      {{"mask", "make", model_path("llama_me"), "--ids", "1,2"}, "-o"},
      {{"mask", "make", model_path("llama_me"), "--k", "0", "-o", file}, "--k"},
      {{"mask", "make", model_path("llama_me"), "--ids", "1,2", "--rate", "0", "-o", file},
       "rate is 0, expected above 0"},
      {{"mask", "make", model_path("llama_me"), "--ids", "1,2", "--criterion", "given", "--dims",
        "1:1,2", "--dims", "99:1,2", "--from-layer", "1", "--to-layer", "1", "-o", file},
       "layer 99"},
      {{"mask", "make", model_path("llama_me"), "--official-compat", "--criterion", "weight", "-o",
        file},
       "--criterion weight"},
      {{"mask", "make", model_path("llama_me"), "--official-compat", "--placement", "pre_norm",
        "-o", file},
       "--placement pre_norm"},
      {{"mask", "make", model_path("llama_me"), "--official-compat", "--token", "massive", "-o",
        file},
       "--token massive"},
      {{"mask", "make", model_path("llama_me"), "--ids", "1,2", "--k", "4", "--rate", "0.5", "-o",
        file},
       "one of them"},
      {{"mask", "make", model_path("llama"), "--ids", "1,2,3", "-o", file}, "--from-layer"},
      {{"mask", "make", model_path("llama_me"), "--ids", "1,2", "--dims", "2:1,2", "-o", file},
       "--criterion given"},
      {{"mask", "make", model_path("llama_me"), "--ids", "1,2", "--criterion", "given", "--dims",
        "2:x", "-o", file},
       "no number"},
      {{"mask", "mak"}, "mask make, mask show or mask export"},
      {{"mask", "show"}, "takes a mask"},
  };
  for (const auto& [arguments, expected] : calls) {
    expect_refusal(run_onset(arguments), 2, expected);
  }
  EXPECT_FALSE(std::filesystem::exists(file));
  const auto olmo = run_onset(
      {"mask", "make", model_path("olmo2"), "--ids", "1,2", "--from-layer", "1", "-o", file});
  expect_refusal(olmo, 1, "no norm before attention");
}

}  // namespace
}  // namespace onset::testing
