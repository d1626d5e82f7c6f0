// POST /v1/completions: the same text and log-probabilities as the generator gives alone, in the
// form that OpenAI's API and lm-eval know.
#include <cmath>

#include "onset/wemask/mask.h"
#include "serve/toy_server.h"

namespace onset::testing {
namespace {

constexpr const char* path = "/v1/completions";

GenerationRequest greedy(const std::string& prompt, std::int64_t tokens) {
  GenerationRequest request;
  for (const char c : prompt) request.ids.push_back(static_cast<unsigned char>(c));
  request.max_new_tokens = tokens;
  request.sampling.temperature = 0;
  request.sampling.logit_bias = letter_bias();
  return request;
}

Completion alone(const GenerationRequest& request) {
  const auto& toy = toy_model();
  Generator generator(*toy.model, &*toy.tokenizer);
  return generate_all(generator, std::span(&request, 1)).front().front();
}

Json asked(const Json& prompt, std::int64_t tokens) {
  return {
      {"prompt", prompt}, {"max_tokens", tokens}, {"temperature", 0}, {"logit_bias", letters()}};
}

std::string text_of(const Reply& reply, std::size_t choice = 0) {
  EXPECT_EQ(reply.status, 200) << reply.body;
  return reply.json()["choices"][choice]["text"];
}

TEST(Completions, EqualTheGeneratorAlone) {
  ToyServer server;
  const auto reply = server.post(path, asked("Hello", 12));
  const auto expected = alone(greedy("Hello", 12));
  EXPECT_EQ(expected.text.size(), 12U);
  EXPECT_EQ(text_of(reply), expected.text);
  const auto json = reply.json();
  EXPECT_EQ(json["object"], "text_completion");
  EXPECT_EQ(json["model"], "toy");
  EXPECT_TRUE(json["id"].get<std::string>().starts_with("cmpl-"));
  EXPECT_EQ(json["choices"][0]["finish_reason"], "length");
  EXPECT_TRUE(json["choices"][0]["logprobs"].is_null());
  EXPECT_EQ(
      json["usage"],
      OrderedJson::parse(R"({"prompt_tokens": 5, "completion_tokens": 12, "total_tokens": 17})"));
  EXPECT_EQ(json["onset"]["wemask"], "off");
}

TEST(Completions, EqualTheGeneratorUnderAMask) {
  ToyServer server;
  auto body = asked("Hello", 12);
  body["logprobs"] = 0;
  const auto unmasked = alone(greedy("Hello", 12));
  auto request = greedy("Hello", 12);
  MaskOptions options;
  options.k = 12;
  options.from_layer = 0;
  request.mask = std::make_shared<const MaskSpec>(make_mask(*toy_model().model, options));
  const auto masked = alone(request);
  ASSERT_GT(std::abs(masked.tokens[0].logprob - unmasked.tokens[0].logprob), 1e-3);
  body["wemask"] = {{"k", 12}, {"from_layer", 0}};
  // The same prompt without a mask runs before and behind it: keys and values are not mixed up.
  auto plain = body;
  plain["wemask"] = "off";
  for (const auto& [asking, expected] :
       {std::pair(plain, unmasked), {body, masked}, {plain, unmasked}, {body, masked}}) {
    const auto reply = server.post(path, asking);
    EXPECT_EQ(text_of(reply), expected.text);
    const auto logprobs = reply.json()["choices"][0]["logprobs"]["token_logprobs"];
    ASSERT_EQ(logprobs.size(), 12U);
    for (std::size_t i = 0; i < 12; ++i) {
      EXPECT_NEAR(logprobs[i].get<double>(), expected.tokens[i].logprob, 1e-4);
    }
  }
  EXPECT_EQ(server.post(path, body).json()["onset"]["wemask"]["k"], 12);
  // "on" is the default mask: a quarter of the dims behind the ME layer.
  body["wemask"] = "on";
  const auto on = server.post(path, body).json()["onset"]["wemask"];
  EXPECT_EQ(on["k"], 4);
  EXPECT_EQ(on["rate"], 0.25);
  EXPECT_EQ(on["from_layer"], 1);
}

TEST(Completions, TakePromptsOfEveryKind) {
  ToyServer server;
  const auto a = alone(greedy("ab", 5)).text;
  const auto b = alone(greedy("xyz", 5)).text;
  EXPECT_EQ(text_of(server.post(path, asked({97, 98}, 5))), a);
  const auto texts = server.post(path, asked({"ab", "xyz"}, 5));
  EXPECT_EQ(text_of(texts, 0), a);
  EXPECT_EQ(text_of(texts, 1), b);
  EXPECT_EQ(texts.json()["usage"]["prompt_tokens"], 5);
  const auto ids = server.post(path, asked({{97, 98}, {120, 121, 122}}, 5));
  EXPECT_EQ(text_of(ids, 0), a);
  EXPECT_EQ(text_of(ids, 1), b);
}

TEST(Completions, SamplesAreNumberedByPromptAndSample) {
  ToyServer server;
  auto body = asked({"ab", "xyz"}, 6);
  body["temperature"] = 1.5;
  body["seed"] = 11;
  body["n"] = 3;
  const auto first = server.post(path, body);
  ASSERT_EQ(first.status, 200) << first.body;
  const auto choices = first.json()["choices"];
  ASSERT_EQ(choices.size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(choices[i]["index"], i);
  EXPECT_NE(choices[0]["text"], choices[1]["text"]);
  // The same seed, the same text; and a seed that is not given is told.
  EXPECT_EQ(server.post(path, body).json()["choices"], choices);
  body.erase("seed");
  const auto other = server.post(path, body).json();
  body["seed"] = other["onset"]["seed"];
  EXPECT_EQ(server.post(path, body).json()["choices"], other["choices"]);
}

TEST(Completions, AServerMayHaveASeed) {
  ToyServer server({.seed = 11});
  auto body = asked("ab", 6);
  body["temperature"] = 1.5;
  const auto first = server.post(path, body).json();
  EXPECT_EQ(first["onset"]["seed"], 11);
  EXPECT_EQ(server.post(path, body).json()["choices"], first["choices"]);
  body["seed"] = 12;
  EXPECT_EQ(server.post(path, body).json()["onset"]["seed"], 12);
}

// As lm-eval's local-completions scores: ids in, echo, one token, and the last one is dropped.
TEST(Completions, EchoWithLogprobsScoresThePrompt) {
  ToyServer server;
  const Json body{{"prompt", {72, 101, 108, 108, 111}},
                  {"max_tokens", 1},
                  {"logprobs", 2},
                  {"echo", true},
                  {"temperature", 0},
                  {"seed", 1234}};
  const auto reply = server.post(path, body);
  ASSERT_EQ(reply.status, 200) << reply.body;
  const auto choice = reply.json()["choices"][0];
  const auto& logprobs = choice["logprobs"];
  EXPECT_TRUE(choice["text"].get<std::string>().starts_with("Hello"));
  ASSERT_EQ(logprobs["tokens"].size(), 6U);
  EXPECT_EQ(logprobs["tokens"][1], "e");
  EXPECT_TRUE(logprobs["token_logprobs"][0].is_null());
  EXPECT_TRUE(logprobs["top_logprobs"][0].is_null());
  EXPECT_EQ(logprobs["text_offset"], OrderedJson::parse("[0, 1, 2, 3, 4, 5]"));

  auto request = greedy("Hello", 0);
  request.sampling.logit_bias = {};
  request.logprobs = request.prompt_logprobs = true;
  request.top_logprobs = 2;
  const auto expected = alone(request);
  ASSERT_EQ(expected.prompt.size(), 5U);
  for (std::size_t i = 1; i < 5; ++i) {
    EXPECT_NEAR(logprobs["token_logprobs"][i].get<double>(), expected.prompt[i].logprob, 1e-4);
    const auto& tops = logprobs["top_logprobs"][i];
    EXPECT_GE(tops.size(), 2U);
    double best = -1e9;
    for (const auto& [name, value] : tops.items()) best = std::max(best, value.get<double>());
    EXPECT_NEAR(best, expected.prompt[i].top.front().logprob, 1e-4);
  }
  // Of the generated token: greedy, so the best of its place, to the last bit.
  double best = -1e9;
  for (const auto& [name, value] : logprobs["top_logprobs"][5].items()) {
    best = std::max(best, value.get<double>());
  }
  EXPECT_EQ(logprobs["token_logprobs"][5].get<double>(), best);
}

TEST(Completions, NoTokensGiveTheLogprobsOfThePromptAlone) {
  ToyServer server;
  const Json body{{"prompt", "Hello"}, {"max_tokens", 0}, {"logprobs", 0}, {"echo", true}};
  const auto reply = server.post(path, body);
  ASSERT_EQ(reply.status, 200) << reply.body;
  const auto choice = reply.json()["choices"][0];
  EXPECT_EQ(choice["text"], "Hello");
  EXPECT_EQ(choice["logprobs"]["tokens"].size(), 5U);
  EXPECT_EQ(choice["logprobs"]["top_logprobs"][1].size(), 1U);  // the token itself
  EXPECT_EQ(reply.json()["usage"]["completion_tokens"], 0);
}

TEST(Completions, StopStringsEndBeforeThemAcrossTokens) {
  ToyServer server;
  const auto whole = alone(greedy("Hello", 30)).text;
  // Two characters that are two tokens, from the middle of the text.
  const auto stop = whole.substr(9, 3);
  const auto at = whole.find(stop);
  auto body = asked("Hello", 30);
  body["stop"] = {"never-there", stop};
  const auto reply = server.post(path, body);
  EXPECT_EQ(text_of(reply), whole.substr(0, at));
  EXPECT_EQ(reply.json()["choices"][0]["finish_reason"], "stop");
  std::string streamed;
  for (const auto& event : server.stream(path, body)) {
    for (const auto& choice : event["choices"]) streamed += choice["text"].get<std::string>();
  }
  EXPECT_EQ(streamed, whole.substr(0, at));
}

TEST(Completions, StreamsAddUpToTheWhole) {
  ToyServer server;
  auto body = asked("Hello", 10);
  body["n"] = 2;
  body["temperature"] = 1;
  body["seed"] = 5;
  body["logprobs"] = 1;
  body["echo"] = true;
  const auto whole = server.post(path, body).json();
  body["stream_options"] = {{"include_usage", true}};
  const auto events = server.stream(path, body);
  std::vector<std::string> texts(2);
  std::vector<OrderedJson> tokens(2, OrderedJson::array());
  std::vector<std::string> finishes(2);
  for (const auto& event : events) {
    for (const auto& choice : event["choices"]) {
      const auto index = choice["index"].get<std::size_t>();
      texts[index] += choice["text"].get<std::string>();
      if (!choice["finish_reason"].is_null()) finishes[index] = choice["finish_reason"];
      if (choice["logprobs"].is_null()) continue;
      for (const auto& token : choice["logprobs"]["tokens"]) tokens[index].push_back(token);
    }
  }
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(texts[i], whole["choices"][i]["text"]);
    EXPECT_EQ(tokens[i], whole["choices"][i]["logprobs"]["tokens"]);
    EXPECT_EQ(finishes[i], whole["choices"][i]["finish_reason"]);
  }
  EXPECT_EQ(events.back()["usage"], whole["usage"]);
  EXPECT_TRUE(events.back()["choices"].empty());
  EXPECT_EQ(events.front()["onset"], whole["onset"]);
}

// Tokens that are parts of characters: no event holds half of one, and the log-probabilities tell
// the bytes.
TEST(Completions, PartsOfCharactersAreToldTruly) {
  ToyServer server;
  Json body{{"prompt", "caf"}, {"max_tokens", 8}, {"temperature", 0}, {"logprobs", 0}};
  body["logit_bias"] = {{"195", 100}, {"169", 100}};  // the two bytes of e with an acute accent
  const auto choice = server.post(path, body).json()["choices"][0];
  ASSERT_EQ(choice["logprobs"]["tokens"].size(), 8U);
  for (const auto& token : choice["logprobs"]["tokens"]) {
    EXPECT_TRUE(token == "bytes:\\xc3" || token == "bytes:\\xa9") << token;
  }
  std::string streamed;
  for (const auto& event : server.stream(path, body)) {
    for (const auto& part : event["choices"]) streamed += part["text"].get<std::string>();
  }
  EXPECT_EQ(streamed, choice["text"].get<std::string>());
}

}  // namespace
}  // namespace onset::testing
