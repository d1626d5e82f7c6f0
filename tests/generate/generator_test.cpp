// One request after the other: what is computed, how it ends, what is refused.
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "generate/generator_support.h"
#include "onset/generate/sampling.h"
#include "onset/model/decoder.h"
#include "onset/tokenizer/tokenizer.h"
#include "support/toy.h"

namespace onset::testing {
namespace {

std::vector<float> row_of(const at::Tensor& logits, std::int64_t row) {
  const at::Tensor values = logits[row].to(at::kFloat).contiguous();
  return {values.const_data_ptr<float>(), values.const_data_ptr<float>() + values.numel()};
}

// Greedy by running all tokens again for every new one, without a cache.
Ids recomputed(const Model& model, Ids ids, std::int64_t count, const MaskSpec* mask) {
  const c10::InferenceMode inference;
  Hooks hooks(model.config().layer_count());
  if (mask != nullptr) add_mask(hooks, *mask, model);
  Ids generated;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::vector<SequenceInput> batch{{.ids = ids}};
    const at::Tensor logits = model.decoder().forward(batch, LogitRows::last, &hooks).logits;
    generated.push_back(logits[0].argmax().item<std::int64_t>());
    ids.push_back(generated.back());
  }
  return generated;
}

GenerationRequest greedy(Ids ids, std::int64_t count) {
  return {.ids = std::move(ids),
          .max_new_tokens = count,
          .sampling = {.temperature = 0},
          .ignore_eos = true};
}

const Ids prompt{1, 9, 42, 77, 5, 130, 9, 200};

class Generating : public ::testing::Test {
 protected:
  Model model_ = open_fixture("llama_me");
};

TEST_F(Generating, GreedyEqualsRecomputation) {
  EXPECT_EQ(ids_of(solo(model_, greedy(prompt, 20)).front()),
            recomputed(model_, prompt, 20, nullptr));
}

// Each kind of mask, alone and beside an unmasked request of the same prompt.
TEST_F(Generating, MasksDoNotLeakBetweenRows) {
  const auto plain = recomputed(model_, prompt, 16, nullptr);
  for (const MaskTokens tokens : {MaskTokens::first, MaskTokens::positions, MaskTokens::massive}) {
    const auto mask = mask_of(model_, {.tokens = tokens,
                                       .positions = {2, 11},
                                       .k = 40,
                                       .massive_dims = {3, 30},
                                       .massive_threshold = 0.5});
    const auto masked = recomputed(model_, prompt, 16, mask.get());
    EXPECT_NE(masked, plain) << "the mask should change something";
    std::vector<GenerationRequest> requests(4, greedy(prompt, 16));
    requests[1].mask = mask;
    requests[3].mask = std::make_shared<const MaskSpec>(*mask);  // the same content
    Generator generator(model_, nullptr, {.prefill_tokens = 5});
    const auto found = generate_all(generator, requests);
    for (const std::size_t i : {0, 2}) EXPECT_EQ(ids_of(found[i][0]), plain) << i;
    for (const std::size_t i : {1, 3}) EXPECT_EQ(ids_of(found[i][0]), masked) << i;
    // Two prompts were computed, not four.
    EXPECT_EQ(generator.counts().prompt_tokens, 2 * 7 + 4);
    EXPECT_EQ(generator.counts().reused_tokens, 2 * 7);
  }
}

// The released code masks the first token of every chunk it is given, decoded ones too.
TEST_F(Generating, OfficialCompatMasksEveryDecodedToken) {
  const auto mask =
      mask_of(model_, {.criterion = MaskCriterion::activation, .k = 30, .official_compat = true});
  const c10::InferenceMode inference;
  Hooks hooks(model_.config().layer_count());
  add_mask(hooks, *mask, model_);
  KvCache cache = model_.decoder().new_cache();
  Ids next = prompt;
  Ids expected;
  for (int i = 0; i < 12; ++i) {
    const std::vector<SequenceInput> batch{{.ids = next, .cache = &cache}};
    const at::Tensor logits = model_.decoder().forward(batch, LogitRows::last, &hooks).logits;
    next = {logits[0].argmax().item<std::int64_t>()};
    expected.push_back(next[0]);
  }
  std::vector<GenerationRequest> requests(3, greedy(prompt, 12));
  requests[0].mask = mask;
  requests[1].mask = mask;
  requests[1].ids = {1, 60, 61};
  Generator generator(model_, nullptr, {.prefill_tokens = 3});
  const auto found = generate_all(generator, requests);
  EXPECT_EQ(ids_of(found[0][0]), expected);
  EXPECT_NE(ids_of(found[2][0]), expected);
}

TEST_F(Generating, ASampleIsTheSameAloneAndAmongOthers) {
  GenerationRequest request{.ids = prompt, .max_new_tokens = 10, .samples = 5};
  request.sampling.temperature = 2;
  request.ignore_eos = true;
  Generator narrow(model_, nullptr, {.max_rows = 2});
  Generator wide(model_, nullptr, {.max_rows = 32});
  const auto few = generate_all(narrow, std::vector{request}).front();
  const auto many = generate_all(wide, std::vector{request}).front();
  std::set<Ids> different;
  for (std::size_t s = 0; s < 5; ++s) {
    EXPECT_EQ(ids_of(few[s]), ids_of(many[s]));
    different.insert(ids_of(many[s]));
  }
  EXPECT_EQ(different.size(), 5U);
  EXPECT_EQ(narrow.counts().prompt_tokens, std::ssize(prompt));
  // And by hand: each draw from the logits of all tokens before it.
  const c10::InferenceMode inference;
  Ids ids = prompt;
  for (std::uint64_t position = 0; position < 10; ++position) {
    const std::vector<SequenceInput> batch{{.ids = ids}};
    const auto logits = row_of(model_.decoder().forward(batch, LogitRows::last).logits, 0);
    const Draw draw = sample_token(logits, request.sampling, {},
                                   {.seed = 0, .request = 0, .sample = 3, .position = position});
    const auto& token = many[3].tokens[position];
    ASSERT_EQ(token.id, draw.id);
    EXPECT_NEAR(token.logprob, draw.logprob, 1e-6);
    EXPECT_NEAR(token.sampled_logprob, draw.sampled_logprob, 1e-6);
    ids.push_back(draw.id);
  }
}

TEST_F(Generating, PromptLogprobsEqualTheLogitsOfThePass) {
  Ids ids;
  for (std::int64_t i = 0; i < 100; ++i) ids.push_back((i * i + 3) % 250);
  GenerationRequest request{.ids = ids, .max_new_tokens = 0};
  request.logprobs = true;
  request.top_logprobs = 3;
  request.prompt_logprobs = true;
  Generator generator(model_, nullptr, {.prefill_tokens = 37});
  const auto found = generate_all(generator, std::vector{request}).front().front();
  EXPECT_EQ(found.finish, FinishReason::length);
  EXPECT_TRUE(found.tokens.empty());
  ASSERT_EQ(found.prompt.size(), ids.size());
  EXPECT_TRUE(std::isnan(found.prompt[0].logprob));
  const c10::InferenceMode inference;
  const std::vector<SequenceInput> batch{{.ids = ids}};
  const at::Tensor logprobs =
      at::log_softmax(model_.decoder().forward(batch, LogitRows::all).logits, -1);
  for (std::size_t t = 1; t < ids.size(); ++t) {
    const at::Tensor row = logprobs[static_cast<std::int64_t>(t) - 1];
    EXPECT_EQ(found.prompt[t].id, ids[t]);
    EXPECT_NEAR(found.prompt[t].logprob, row[ids[t]].item<double>(), 1e-5);
    const auto [values, indices] = row.topk(3);
    ASSERT_EQ(found.prompt[t].top.size(), 3U);
    for (std::int64_t k = 0; k < 3; ++k) {
      EXPECT_EQ(found.prompt[t].top[static_cast<std::size_t>(k)].id,
                indices[k].item<std::int64_t>());
      EXPECT_NEAR(found.prompt[t].top[static_cast<std::size_t>(k)].logprob,
                  values[k].item<double>(), 1e-5);
    }
  }
}

TEST_F(Generating, EndsAtEndTokensStopIdsAndTheContext) {
  const auto all = ids_of(solo(model_, greedy(prompt, 20)).front());
  auto request = greedy(prompt, 20);
  request.stop_ids = {all[4]};
  const auto first = std::find(all.begin(), all.end(), all[4]) - all.begin();
  const auto stopped = solo(model_, request).front();
  EXPECT_EQ(stopped.finish, FinishReason::stop);
  EXPECT_EQ(ids_of(stopped), Ids(all.begin(), all.begin() + first + 1));
  // The model's own end token: made the most likely by a bias.
  request = greedy(prompt, 20);
  request.sampling.logit_bias = {{2, 1000.0}};
  request.ignore_eos = false;
  EXPECT_EQ(ids_of(solo(model_, request).front()), Ids{2});
  request.ignore_eos = true;
  EXPECT_EQ(ids_of(solo(model_, request).front()), Ids(20, 2));
  Generator small(model_, nullptr, {.context = 13});
  const auto full = generate_all(small, std::vector{greedy(prompt, 20)}).front().front();
  EXPECT_EQ(full.finish, FinishReason::length);
  EXPECT_EQ(ids_of(full), Ids(all.begin(), all.begin() + 5));
}

TEST_F(Generating, CancelEndsARequestAndFreesItsRow) {
  Generator generator(model_, nullptr, {.max_rows = 1});
  std::vector<FinishReason> ends;
  Ids seen;
  const auto first = generator.submit(greedy(prompt, 50), [&](const GenerationUpdate& update) {
    for (const auto& token : update.tokens) seen.push_back(token.id);
    if (update.finish) ends.push_back(*update.finish);
    if (seen.size() == 3) generator.cancel(1);
  });
  ASSERT_EQ(first, 1U);
  const auto waiting = generator.submit(greedy(prompt, 4), [&](const GenerationUpdate& update) {
    if (update.finish) ends.push_back(*update.finish);
  });
  const auto last = generator.submit(greedy(prompt, 4), [&](const GenerationUpdate& update) {
    if (update.finish) ends.push_back(*update.finish);
  });
  EXPECT_NE(waiting, last);
  generator.cancel(waiting);
  generator.cancel(12345);
  while (generator.step()) {
  }
  EXPECT_EQ(seen.size(), 3U);
  EXPECT_EQ(ends,
            (std::vector{FinishReason::cancelled, FinishReason::cancelled, FinishReason::length}));
  EXPECT_EQ(generator.counts().running, 0);
  EXPECT_EQ(generator.counts().waiting, 0);
  EXPECT_FALSE(generator.step());
}

TEST_F(Generating, AnExceptionOfACallbackLeavesNothingBehind) {
  Generator generator(model_, nullptr);
  int given = 0;
  static_cast<void>(generator.submit(greedy(prompt, 3), [&](const GenerationUpdate&) {
    if (++given == 1) throw std::runtime_error("the client left");
  }));
  Ids other;
  static_cast<void>(generator.submit(greedy({1, 5}, 3), [&](const GenerationUpdate& update) {
    for (const auto& token : update.tokens) other.push_back(token.id);
  }));
  EXPECT_THROW(static_cast<void>(generator.step()), std::runtime_error);
  while (generator.step()) {
  }
  EXPECT_EQ(given, 3);
  EXPECT_EQ(other, recomputed(model_, {1, 5}, 3, nullptr));
}

TEST_F(Generating, RepeatedPromptsAreNotComputedAgain) {
  Generator generator(model_, nullptr, {.prefill_tokens = 64});
  Ids longer = prompt;
  for (std::int64_t i = 0; i < 40; ++i) longer.push_back(3 + i);
  const auto first = generate_all(generator, std::vector{greedy(longer, 4)}).front().front();
  EXPECT_EQ(generator.counts().prompt_tokens, 48);
  EXPECT_EQ(generator.counts().reused_tokens, 0);
  // A conversation goes on: prompt, answer, and more. The last token of the answer was never run.
  Ids next = longer;
  for (const auto id : ids_of(first)) next.push_back(id);
  next.push_back(7);
  EXPECT_EQ(ids_of(generate_all(generator, std::vector{greedy(next, 6)}).front().front()),
            recomputed(model_, next, 6, nullptr));
  EXPECT_EQ(generator.counts().reused_tokens, 51);
  EXPECT_EQ(generator.counts().prompt_tokens, 48 + 2);
  // Never across masks.
  auto masked = greedy(next, 6);
  masked.mask = mask_of(model_, {.k = 40});
  EXPECT_EQ(ids_of(generate_all(generator, std::vector{masked}).front().front()),
            recomputed(model_, next, 6, masked.mask.get()));
  EXPECT_EQ(generator.counts().reused_tokens, 51);
}

TEST_F(Generating, WrongRequestsAreRefusedAndChangeNothing) {
  Generator generator(model_, nullptr, {.context = 10});
  const auto refused = [&](auto&& change) {
    GenerationRequest request{.ids = prompt};
    change(request);
    return error_of([&] { static_cast<void>(generator.submit(request, {})); });
  };
  EXPECT_NE(refused([](auto& r) { r.ids.clear(); }).find("no token"), std::string::npos);
  EXPECT_NE(refused([](auto& r) { r.ids[3] = 256; }).find("token id 256 is outside"),
            std::string::npos);
  EXPECT_NE(refused([](auto& r) { r.ids[3] = -1; }).find("token id -1 is outside"),
            std::string::npos);
  EXPECT_NE(refused([](auto& r) { r.ids.resize(10, 5); }).find("10 tokens, and the context is 10"),
            std::string::npos);
  EXPECT_NE(refused([](auto& r) { r.samples = 0; }).find("samples"), std::string::npos);
  EXPECT_NE(refused([](auto& r) { r.max_new_tokens = -1; }).find("max_new_tokens"),
            std::string::npos);
  EXPECT_NE(refused([](auto& r) { r.top_logprobs = 257; }).find("top_logprobs is 257"),
            std::string::npos);
  EXPECT_NE(refused([](auto& r) { r.stop = {"x"}; }).find("need a tokenizer"), std::string::npos);
  EXPECT_NE(refused([](auto& r) { r.sampling.top_p = 2; }).find("top_p is 2"), std::string::npos);
  EXPECT_NE(refused([](auto& r) {
              r.sampling.logit_bias = {{256, 1.0}};
            }).find("256 is outside"),
            std::string::npos);
  const Model other = open_fixture("qwen3");
  EXPECT_NE(refused([&](auto& r) { r.mask = mask_of(other); }).find("qwen3"), std::string::npos);
  EXPECT_FALSE(generator.step());
  EXPECT_EQ(generator.counts().waiting, 0);
}

// A model whose token 7 is embedded as NaN: what touches it fails, what runs beside it does not.
TEST(GeneratingWithFailures, NanLogitsFailTheirRequestAlone) {
  Toy toy;
  toy.draw();
  for (int i = 0; i < 8; ++i) {
    toy.values["model.embed_tokens.weight"][7 * 8 + static_cast<std::size_t>(i)] =
        std::numeric_limits<float>::quiet_NaN();
  }
  const TemporaryFolder folder;
  toy.write(folder.path());
  const Model model = Model::open(folder.path(), {.residency = Residency::resident});
  auto good = greedy({1, 5, 9}, 6);
  good.sampling.logit_bias = {{7, -1000.0}};
  auto bad = greedy({1, 7, 9}, 6);
  bad.samples = 2;
  Generator generator(model, nullptr);
  for (int time = 0; time < 2; ++time) {
    const auto found = generate_all(generator, std::vector{good, bad, good});
    EXPECT_EQ(found[0][0].tokens.size(), 6U);
    EXPECT_EQ(ids_of(found[0][0]), ids_of(found[2][0]));
    for (const auto& sample : found[1]) {
      EXPECT_EQ(sample.finish, FinishReason::failed);
      EXPECT_NE(sample.error.find("NaN"), std::string::npos) << sample.error;
    }
  }
}

// Against references computed with transformers; ids are comparable while the margin between the
// two most likely tokens is above the rounding of another library.
TEST(GeneratingSmolLm2, GreedyEqualsTransformers) {
  if (demo_model().empty()) GTEST_SKIP() << "run scripts/setup";
  const Model model = Model::open(demo_model(), {.residency = Residency::resident});
  const auto reference =
      OrderedJson::parse(read_file(onset::testing::data("smollm2/generation.json")));
  const auto mask = std::make_shared<const MaskSpec>(
      make_mask(model, {.k = reference["mask"]["k"].get<std::int64_t>(),
                        .from_layer = reference["mask"]["m"].get<std::int64_t>()}));
  std::vector<GenerationRequest> requests;
  std::vector<const OrderedJson*> expected;
  for (const auto& row : reference["prompts"]) {
    for (const char* mode : {"none", "wemask"}) {
      requests.push_back(greedy(row["ids"].get<Ids>(), 48));
      if (std::string_view(mode) == "wemask") requests.back().mask = mask;
      requests.back().logprobs = true;
      requests.back().top_logprobs = 5;
      expected.push_back(&row[mode]);
    }
  }
  Generator generator(model, nullptr);
  const auto found = generate_all(generator, requests);
  std::size_t compared = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto& tokens = found[i][0].tokens;
    const OrderedJson& row = *expected[i];
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      if (row["logit_margin_top1_top2"][t].get<double>() <= 1e-3) break;
      ASSERT_EQ(tokens[t].id, row["ids"][t].get<std::int64_t>()) << "request " << i << " at " << t;
      ++compared;
    }
    for (std::size_t k = 0; k < 5; ++k) {
      EXPECT_NEAR(tokens[0].top[k].logprob, row["first_step_top5"][k]["logprob"].get<double>(),
                  2e-4);
    }
  }
  EXPECT_GT(compared, requests.size() * 40);
}

// Stop strings across tokens, and the text beside them.
TEST(GeneratingSmolLm2, StopStringsEndTheText) {
  if (demo_model().empty()) GTEST_SKIP() << "run scripts/setup";
  const Model model = Model::open(demo_model(), {.residency = Residency::resident});
  const Tokenizer tokenizer = Tokenizer::open(demo_model());
  const auto tokens = tokenizer.encode("The capital of France is");
  const auto request = greedy({tokens.begin(), tokens.end()}, 24);
  Generator generator(model, &tokenizer);
  const auto whole = generate_all(generator, std::vector{request}).front().front();
  std::vector<TokenId> ids;
  for (const auto& token : whole.tokens) ids.push_back(static_cast<TokenId>(token.id));
  EXPECT_EQ(whole.text, tokenizer.decode(ids, {.skip_special = true}));
  ASSERT_GT(whole.text.size(), 20U);
  for (std::size_t at = 1; at + 6 < whole.text.size(); at += 3) {
    auto stopped = request;
    stopped.stop = {"no such text", whole.text.substr(at, 6)};
    const auto found = generate_all(generator, std::vector{stopped}).front().front();
    EXPECT_EQ(found.text, whole.text.substr(0, whole.text.find(stopped.stop[1])));
    EXPECT_EQ(found.finish, FinishReason::stop);
    EXPECT_LE(found.tokens.size(), whole.tokens.size());
  }
}

}  // namespace
}  // namespace onset::testing
