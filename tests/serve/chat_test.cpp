// POST /v1/chat/completions, and the sinks of a conversation.
#include "onset/serve/masked_sinks.h"
#include "onset/wemask/mask.h"
#include "serve/toy_server.h"

namespace onset::testing {
namespace {

constexpr const char* path = "/v1/chat/completions";

Json user(const std::string& content) { return {{"role", "user"}, {"content", content}}; }

Json asked(const Json& messages, std::int64_t tokens = 8) {
  return {{"messages", messages},
          {"max_tokens", tokens},
          {"temperature", 0},
          {"logit_bias", letters()}};
}

std::string content_of(const Reply& reply) {
  EXPECT_EQ(reply.status, 200) << reply.body;
  return reply.json()["choices"][0]["message"]["content"];
}

// The ids of a ChatML prompt by another way: text and markers apart.
std::vector<std::int64_t> chatml(const std::vector<std::pair<std::string, std::string>>& turns) {
  std::vector<std::int64_t> ids;
  const auto add = [&ids](const std::string& text) {
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  };
  for (const auto& [role, content] : turns) {
    ids.push_back(256);
    add(role);
    add("\n");
    add(content);
    ids.push_back(257);
    add("\n");
  }
  ids.push_back(256);
  add("assistant\n");
  return ids;
}

std::string alone(const std::vector<std::int64_t>& ids, std::int64_t tokens = 8) {
  GenerationRequest request;
  request.ids = ids;
  request.max_new_tokens = tokens;
  request.sampling.temperature = 0;
  request.sampling.logit_bias = letter_bias();
  Generator generator(*toy_model().model, &*toy_model().tokenizer);
  return generate_all(generator, std::span(&request, 1)).front().front().text;
}

TEST(Chats, EqualTheGeneratorOnTheRenderedPrompt) {
  ToyServer server;
  const auto reply = server.post(path, asked(Json::array({user("Hello")})));
  EXPECT_EQ(content_of(reply), alone(chatml({{"user", "Hello"}})));
  const auto json = reply.json();
  EXPECT_EQ(json["object"], "chat.completion");
  EXPECT_EQ(json["choices"][0]["message"]["role"], "assistant");
  EXPECT_EQ(json["usage"]["prompt_tokens"], chatml({{"user", "Hello"}}).size());
}

TEST(Chats, TakeSystemsPartsAndHistory) {
  ToyServer server;
  const Json parts = {{{"type", "text"}, {"text", "He"}}, {{"type", "text"}, {"text", "llo"}}};
  // What the API's own clients send back with an answer.
  const Json reply = {{"role", "assistant"},
                      {"content", "Hi"},
                      {"refusal", nullptr},
                      {"annotations", Json::array()}};
  const Json messages = {{{"role", "developer"}, {"content", "Be brief."}},
                         user("Hi"),
                         reply,
                         {{"role", "user"}, {"content", parts}}};
  EXPECT_EQ(
      content_of(server.post(path, asked(messages))),
      alone(chatml(
          {{"system", "Be brief."}, {"user", "Hi"}, {"assistant", "Hi"}, {"user", "Hello"}})));
}

// A message that spells a marker does not end its turn, unless the server was told so.
TEST(Chats, SpecialTokensInAMessageAreText) {
  const Json messages = Json::array({user("a<|im_end|>b")});
  const auto literal = chatml({{"user", "a<|im_end|>b"}});
  ToyServer server;
  const auto reply = server.post(path, asked(messages));
  EXPECT_EQ(content_of(reply), alone(literal));
  EXPECT_EQ(reply.json()["usage"]["prompt_tokens"], literal.size());
  ToyServer parsing({.parse_special = true});
  const auto parsed = parsing.post(path, asked(messages));
  EXPECT_EQ(parsed.json()["usage"]["prompt_tokens"], literal.size() - 10 + 1);
}

TEST(Chats, LogprobsTellTheBytes) {
  ToyServer server;
  auto body = asked(Json::array({user("Hello")}), 4);
  body["logit_bias"] = {{"195", 100}, {"169", 100}};
  body["logprobs"] = true;
  body["top_logprobs"] = 2;
  const auto choice = server.post(path, body).json()["choices"][0];
  const auto& content = choice["logprobs"]["content"];
  ASSERT_EQ(content.size(), 4U);
  for (const auto& token : content) {
    const bool first = token["token"] == "\\xc3";
    EXPECT_TRUE(first || token["token"] == "\\xa9") << token;
    EXPECT_EQ(token["bytes"], OrderedJson::array({first ? 0xC3 : 0xA9}));
    EXPECT_EQ(token["top_logprobs"].size(), 2U);
    EXPECT_LE(token["logprob"].get<double>(), 0);
  }
}

TEST(Chats, StreamsBeginWithTheRoleAndAddUp) {
  ToyServer server;
  auto body = asked(Json::array({user("Hello")}));
  const auto whole = content_of(server.post(path, body));
  const auto events = server.stream(path, body);
  EXPECT_EQ(events.front()["choices"][0]["delta"]["role"], "assistant");
  EXPECT_EQ(events.front()["object"], "chat.completion.chunk");
  EXPECT_EQ(events.front()["onset"]["wemask"], "off");
  std::string text;
  for (const auto& event : events) {
    EXPECT_FALSE(event.contains("usage"));
    EXPECT_EQ(event["id"], events.front()["id"]);
    text += event["choices"][0]["delta"].value("content", "");
  }
  EXPECT_EQ(text, whole);
  EXPECT_EQ(events.back()["choices"][0]["finish_reason"], "length");
}

TEST(Chats, TheServersMaskIsOnUnlessARequestSaysOff) {
  const auto spec = make_mask(*toy_model().model, {.k = 3, .from_layer = 0});
  ToyServer server({.mask = spec});
  auto body = asked(Json::array({user("Hello")}));
  EXPECT_EQ(server.post(path, body).json()["onset"]["wemask"]["k"], 3);
  body["wemask"] = "on";
  EXPECT_EQ(server.post(path, body).json()["onset"]["wemask"]["k"], 3);
  body["wemask"] = "off";
  EXPECT_EQ(server.post(path, body).json()["onset"]["wemask"], "off");
}

TEST(Chats, SinksEqualTheMeasureAlone) {
  ToyServer server;
  const auto& model = *toy_model().model;
  const auto spec = make_mask(model, {.k = 3, .from_layer = 0});
  auto ids = chatml({{"user", "Hello"}, {"assistant", "Hi"}});
  ids.resize(ids.size() - std::string("assistant\n").size() - 1);
  const Json body{{"messages", Json::array({user("Hello")})}, {"answer", "Hi"}};
  auto masked = body;
  masked["wemask"] = {{"k", 3}, {"from_layer", 0}};
  for (const bool with_mask : {false, true}) {
    const auto reply = server.post("/onset/sinks", with_mask ? masked : body);
    ASSERT_EQ(reply.status, 200) << reply.body;
    const auto expected = first_token_sinks(model, ids, with_mask ? &spec : nullptr);
    const auto json = reply.json();
    EXPECT_EQ(json["tokens"], ids.size());
    EXPECT_DOUBLE_EQ(json["sink_rate"].get<double>(), expected.sink_rate);
    ASSERT_EQ(json["layers"].size(), 2U);
    EXPECT_DOUBLE_EQ(json["layers"][1]["mean_alpha"].get<double>(), expected.layer_alpha[1]);
  }
  EXPECT_EQ(server.post("/onset/sinks", {{"ids", {1}}}).status, 400);
  EXPECT_EQ(server.post("/onset/sinks", {{"ids", {1, 2}}, {"prompt", "x"}}).status, 400);
  EXPECT_EQ(server.post("/onset/sinks", {{"prompt", "ab"}}).status, 200);
}

}  // namespace
}  // namespace onset::testing
