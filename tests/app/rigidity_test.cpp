// onset rigidity: its cosines against captured states, and calls that it refuses.

#include <cmath>
#include <cstring>

#include "app/program.h"
#include "onset/base/error.h"
#include "onset/checkpoint/safetensors.h"

namespace onset::testing {
namespace {

const std::vector<std::string> two_prompts{"--ids", "1,9,14,22,31,40", "--ids", "1,61,70,33"};

std::vector<std::string> call(const std::string& verb, const std::string& model,
                              const std::vector<std::string>& more) {
  std::vector<std::string> arguments{verb, model_path(model)};
  arguments.insert(arguments.end(), two_prompts.begin(), two_prompts.end());
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

// Row `token` of a captured tensor.
std::vector<double> row(const SafetensorsFile& file, const std::string& name, std::size_t token) {
  for (const auto& tensor : file.tensors) {
    if (tensor.name != name) continue;
    const auto rows = static_cast<std::size_t>(tensor.shape[0]);
    std::vector<float> values(tensor.bytes / sizeof(float));
    std::memcpy(values.data(), file.file.bytes().data() + tensor.offset, tensor.bytes);
    const auto size = values.size() / rows;
    return {values.begin() + static_cast<std::ptrdiff_t>(token * size),
            values.begin() + static_cast<std::ptrdiff_t>((token + 1) * size)};
  }
  ADD_FAILURE() << "no tensor " << name;
  return {0};
}

double cosine(const std::vector<double>& a, const std::vector<double>& b) {
  double ab = 0;
  double aa = 0;
  double bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  return ab / std::sqrt(aa * bb);
}

// What `found` says of a site, against the captured states of its tokens.
void expect_cosines(const OrderedJson& found, std::size_t site, const SafetensorsFile& states) {
  const auto name = found["sites"][site]["site"].get<std::string>();
  const auto state = [&](std::size_t prompt, std::size_t layer, const char* which) {
    return row(states, str_cat(prompt, ".layers.", layer, ".", name),
               found["prompts"][prompt][which].get<std::size_t>());
  };
  for (const auto& [part, which] : {std::pair{"token", "token"}, {"baseline", "baseline_token"}}) {
    const auto& compared = found["sites"][site][part];
    for (std::size_t l = 0; l < compared["layers"].size(); ++l) {
      const auto& layer = compared["layers"][l];
      const double between = cosine(state(0, l, which), state(1, l, which));
      EXPECT_NEAR(layer["prompt_cosine"][0][1].get<double>(), between, 1e-5);
      EXPECT_NEAR(layer["mean_prompt_cosine"].get<double>(), between, 1e-5);
      EXPECT_NEAR(layer["min_prompt_cosine"].get<double>(), between, 1e-5);
      if (l == 0) continue;
      const double before = (cosine(state(0, l, which), state(0, l - 1, which)) +
                             cosine(state(1, l, which), state(1, l - 1, which))) /
                            2;
      EXPECT_NEAR(layer["previous_cosine"].get<double>(), before, 1e-5);
      EXPECT_NEAR(compared["layer_cosine"][l - 1][l].get<double>(), before, 1e-5);
    }
  }
}

TEST(Rigidity, CosinesAreThoseOfTheCapturedStates) {
  const TemporaryFolder folder;
  const auto path = (folder.path() / "states.safetensors").string();
  ASSERT_EQ(run_onset(call("capture", "llama_me",
                           {"--sites", "layers.*.resid_post,layers.*.k_pre", "-o", path}))
                .code,
            0);
  const auto states = read_safetensors(path);
  const auto outcome = run_onset(call("rigidity", "llama_me", {"--json"}));
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const auto found = outcome.json();
  EXPECT_EQ(found["me_layer"], 1);
  EXPECT_EQ(found["prompts"][0]["token"], 0);
  EXPECT_EQ(found["prompts"][0]["baseline_token"], 3);
  EXPECT_EQ(found["prompts"][1]["baseline_token"], 2);
  EXPECT_TRUE(found["left_out"].empty());
  EXPECT_EQ(found["sites"][0]["site"], "resid_post");
  EXPECT_EQ(found["sites"][2]["site"], "k_pre");
  const auto named =
      run_onset(call("rigidity", "llama_me", {"--token", "1", "--baseline-token", "3", "--json"}))
          .json();
  for (const std::size_t site : {0, 2}) {
    expect_cosines(found, site, states);
    expect_cosines(named, site, states);
  }
}

TEST(Rigidity, EqualBeginningsAreSaid) {
  const auto alike = run_onset(call("rigidity", "llama_me", {}));
  EXPECT_NE(alike.out.find("causality"), std::string::npos) << alike.out;
  const auto differ =
      run_onset({"rigidity", model_path("llama"), "--ids", "5,6", "--ids", "7,6", "--token", "0"});
  EXPECT_EQ(differ.out.find("causality"), std::string::npos) << differ.out;
  EXPECT_EQ(run_onset(call("rigidity", "llama_me", {"--json"})).json()["distinct_prefixes"], 1);
}

TEST(Rigidity, TokensCanBeNamed) {
  const auto found =
      run_onset(call("rigidity", "llama", {"--token", "1", "--baseline-token", "2", "--json"}))
          .json();
  EXPECT_TRUE(found["me_layer"].is_null());
  EXPECT_EQ(found["named_token"], 1);
  for (const auto& prompt : found["prompts"]) {
    EXPECT_EQ(prompt["token"], 1);
    EXPECT_EQ(prompt["baseline_token"], 2);
  }
}

TEST(Rigidity, OnePromptHasNoNumbersBetweenPrompts) {
  const auto found =
      run_onset({"rigidity", model_path("llama_me"), "--ids", "1,9,14,22", "--json"}).json();
  const auto& layer = found["sites"][0]["token"]["layers"][1];
  EXPECT_TRUE(layer["mean_prompt_cosine"].is_null());
  EXPECT_TRUE(layer["effective_rank"].is_null());
  EXPECT_FALSE(layer["previous_cosine"].is_null());
  const auto table = run_onset({"rigidity", model_path("llama_me"), "--ids", "1,9,14,22"});
  EXPECT_NE(table.out.find("With one prompt"), std::string::npos) << table.out;
}

TEST(Rigidity, TheTablesFitTheTerminal) {
  for (const char* locale : {"C.UTF-8", "C"}) {
    for (const char* model : {"llama_me", "mistral_me"}) {
      const auto outcome = run_onset(call("rigidity", model, {}), {.locale = locale});
      ASSERT_EQ(outcome.code, 0) << outcome.error;
      EXPECT_LE(widest_line(outcome.out), 80U) << outcome.out;
      EXPECT_NE(outcome.out.find("the baseline token"), std::string::npos) << outcome.out;
    }
  }
  const auto olmo = run_onset(call("rigidity", "olmo2", {"--token", "0"}));
  ASSERT_EQ(olmo.code, 0) << olmo.error;
  EXPECT_EQ(olmo.out.find("attn_norm"), std::string::npos) << "no norm before attention";
}

TEST(Rigidity, WhatCannotBeComparedIsRefusedWithARemedy) {
  const auto refuse = [](const std::string& model, const std::vector<std::string>& more,
                         const std::string& part, const std::string& hint) {
    const auto outcome = run_onset(call("rigidity", model, more));
    expect_refusal(outcome, 2, part);
    EXPECT_NE(outcome.error.find(hint), std::string::npos) << outcome.error;
  };
  refuse("llama", {}, "no ME layer", "--token 0");
  refuse("llama", {"--token", "4"}, "position 4 (--token) is outside prompt 1", "every prompt");
  refuse("llama", {"--token", "1", "--baseline-token", "9"}, "(--baseline-token)", "every prompt");
  refuse("llama", {"--token", "1", "--baseline-token", "1"}, "are both 1", "name another");
  refuse("llama_me", {"--baseline-token", "0"}, "massive token of prompt 0", "--baseline-token");
  refuse("llama", {"--token", "first"}, "--token: \"first\" is not a whole number", "");
  const TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 129; ++i) lines += "{\"ids\":[5,6,7]}\n";
  refuse("llama", {"--jsonl", folder.write("many.jsonl", lines).string()}, "at most 128",
         "fewer prompts");
}

}  // namespace
}  // namespace onset::testing
