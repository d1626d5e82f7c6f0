// What a request may not be: each is a 4xx with OpenAI's error object, and the server goes on.
#include "onset/base/error.h"
#include "onset/serve/host_name.h"
#include "serve/toy_server.h"

namespace onset::testing {
namespace {

constexpr const char* completions = "/v1/completions";
constexpr const char* chats = "/v1/chat/completions";

void expect_error(const Reply& reply, int status, const std::string& param,
                  const std::string& message_part) {
  EXPECT_EQ(reply.status, status) << reply.body;
  const auto error = reply.error();
  EXPECT_TRUE(error["message"].is_string() && error["type"].is_string());
  EXPECT_EQ(error["param"], param.empty() ? OrderedJson(nullptr) : OrderedJson(param));
  EXPECT_NE(error["message"].get<std::string>().find(message_part), std::string::npos)
      << error["message"];
}

TEST(Refusals, WrongTypesAndRangesNameTheField) {
  ToyServer server;
  const std::vector<std::pair<Json, std::string>> cases{
      {{{"prompt", 5}}, "prompt"},
      {{{"prompt", {"a", 5}}}, "prompt"},
      {{{"prompt", {1, -1}}}, "prompt"},
      {{{"prompt", {1, 258}}}, "prompt"},
      {{{"prompt", {1, 1.5}}}, "prompt"},
      {{{"prompt", ""}}, "prompt"},
      {{{"prompt", Json::array()}}, "prompt"},
      {{{"max_tokens", 5}}, "prompt"},
      {{{"prompt", "a"}, {"max_tokens", "5"}}, "max_tokens"},
      {{{"prompt", "a"}, {"max_tokens", -1}}, "max_tokens"},
      {{{"prompt", "a"}, {"max_tokens", 1.5}}, "max_tokens"},
      {{{"prompt", "a"}, {"max_tokens", 1e300}}, "max_tokens"},
      {{{"prompt", "a"}, {"max_tokens", 18446744073709551615ULL}}, "max_tokens"},
      {{{"prompt", "a"}, {"temperature", -1}}, "temperature"},
      {{{"prompt", "a"}, {"temperature", "hot"}}, "temperature"},
      {{{"prompt", "a"}, {"top_p", 1.5}}, "top_p"},
      {{{"prompt", "a"}, {"n", 0}}, "n"},
      {{{"prompt", "a"}, {"n", 100000}}, "n"},
      {{{"prompt", "a"}, {"best_of", 2}}, "best_of"},
      {{{"prompt", "a"}, {"suffix", "b"}}, "suffix"},
      {{{"prompt", "a"}, {"stop", ""}}, "stop"},
      {{{"prompt", "a"}, {"stop", {1}}}, "stop"},
      {{{"prompt", "a"}, {"logprobs", 1000}}, "logprobs"},
      {{{"prompt", "a"}, {"logprobs", true}}, "logprobs"},
      {{{"prompt", "a"}, {"stream", "yes"}}, "stream"},
      {{{"prompt", "a"}, {"stream_options", {{"include_usage", true}}}}, "stream_options"},
      {{{"prompt", "a"}, {"logit_bias", {{"x", 1}}}}, "logit_bias"},
      {{{"prompt", "a"}, {"logit_bias", {{"1", 1000}}}}, "logit_bias.1"},
      {{{"prompt", "a"}, {"promt", "a"}}, "promt"},
      {{{"prompt", "a"}, {"messages", Json::array()}}, "messages"},
      {{{"prompt", "a"}, {"wemask", "maybe"}}, "wemask"},
      {{{"prompt", "a"}, {"wemask", true}}, "wemask"},
      {{{"prompt", "a"}, {"wemask", {{"k", 0}, {"from_layer", 0}}}}, "wemask"},
      {{{"prompt", "a"}, {"wemask", {{"gamma", 0}}}}, "wemask.gamma"},
      {{{"prompt", "a"}, {"wemask", {{"kk", 1}}}}, "wemask.kk"},
      {{{"prompt", "a"}, {"wemask", {{"dims", {{"0", {1}}}}}}}, "wemask.dims"},
      {{{"prompt", "a"}, {"wemask", {{"criterion", "given"}, {"dims", {{"00", {1}}}}}}},
       "wemask.dims"},
      {{{"prompt", "a"}, {"wemask", {{"positions", {1}}}}}, "wemask.positions"},
      {{{"prompt", "a"}, {"wemask", {{"official_compat", true}, {"criterion", "weight"}}}},
       "wemask.criterion"},
      {{{"prompt", "a"}, {"wemask", {{"official_compat", true}, {"placement", "pre_norm"}}}},
       "wemask.placement"},
      {{{"prompt", "a"}, {"wemask", {{"official_compat", true}, {"tokens", "massive"}}}},
       "wemask.tokens"},
      {{{"prompt", "a"}, {"wemask", {{"criterion", "best"}}}}, "wemask.criterion"},
      {{{"prompt", "a"}, {"wemask", {{"from_layer", 99}}}}, "wemask"},
      {{{"prompt", "a"}, {"wemask", {{"format", "onset.wemask.1"}}}}, "wemask"},
  };
  for (const auto& [body, param] : cases) {
    SCOPED_TRACE(body.dump());
    expect_error(server.post(completions, body), 400, param, "");
  }
  EXPECT_EQ(server.post(completions, {{"prompt", "a"}, {"max_tokens", 1}}).status, 200);
}

TEST(Refusals, UnknownFieldsGetTheNearestName) {
  ToyServer server;
  expect_error(server.post(completions, {{"prompt", "a"}, {"temprature", 1}}), 400, "temprature",
               "did you mean \"temperature\"?");
  // Fields of the API that have no effect on an answer are taken.
  const Json body{{"prompt", "a"}, {"max_tokens", 1}, {"user", "me"}, {"metadata", {{"a", "b"}}}};
  EXPECT_EQ(server.post(completions, body).status, 200);
}

TEST(Refusals, PartsOfTheApiThatAreNotThere) {
  ToyServer server;
  const Json messages = Json::array({{{"role", "user"}, {"content", "a"}}});
  const Json image = Json::array({{{"type", "image_url"}, {"image_url", {{"url", "x"}}}}});
  const std::vector<std::pair<Json, std::string>> cases{
      {{{"tools", {{{"type", "function"}}}}}, "tools"},
      {{{"functions", {{{"name", "f"}}}}}, "functions"},
      {{{"tool_choice", "required"}}, "tool_choice"},
      {{{"response_format", {{"type", "json_object"}}}}, "response_format"},
      {{{"audio", {{"voice", "x"}}}}, "audio"},
      {{{"modalities", {"text", "audio"}}}, "modalities"},
      {{{"top_logprobs", 2}}, "top_logprobs"},
      {{{"max_tokens", 3}, {"max_completion_tokens", 4}}, "max_tokens"},
      {{{"prompt", "a"}}, "prompt"},
      {{{"messages", Json::array()}}, "messages"},
      {{{"messages", "hello"}}, "messages"},
      {{{"messages", {{{"content", "a"}}}}}, "messages[0].role"},
      {{{"messages", {{{"role", "user"}}}}}, "messages"},
      {{{"messages", {{{"role", "wizard"}, {"content", "a"}}}}}, "messages"},
      {{{"messages", {{{"role", "user"}, {"content", 5}}}}}, "messages[0].content"},
      {{{"messages", {{{"role", "user"}, {"content", image}}}}}, "messages[0].content[0].type"},
      {{{"messages", {{{"role", "user"}, {"content", "a"}, {"colour", 1}}}}}, "messages[0].colour"},
  };
  for (const auto& [fields, param] : cases) {
    SCOPED_TRACE(fields.dump());
    Json body{{"messages", messages}};
    body.update(fields);
    expect_error(server.post(chats, body), 400, param, "");
  }
  // What asks for nothing is no obstacle.
  const Json harmless{{"messages", messages},
                      {"max_tokens", 1},
                      {"tools", Json::array()},
                      {"response_format", {{"type", "text"}}},
                      {"tool_choice", "none"}};
  EXPECT_EQ(server.post(chats, harmless).status, 200);
}

TEST(Refusals, HostileBodies) {
  ToyServer server;
  const std::vector<std::string> bodies{
      "",
      "{",
      "[]",
      "null",
      R"("x")",
      R"({"prompt": "a",})",
      std::string(100000, '['),
      R"({"prompt": )" + std::string(600, '[') + std::string(600, ']') + "}",
      std::string(R"({"prompt": ")") + '\xFF' + R"("})",
      R"({"prompt": "\ud800"})",
      R"({"prompt": 1e999})",
      std::string(R"({"prompt": "a)") + '\0' + R"(b"})",
      std::string(R"({"prompt": "a"})") + '\0' + R"({"prompt": "b"})",
      R"({"prompt": "a", "prompt": "b"})",
      R"({"prompt": "a"} x)"};
  for (const auto& body : bodies) {
    const auto reply = server.post_text(completions, body);
    EXPECT_EQ(reply.status, 400) << body.substr(0, 60);
    EXPECT_TRUE(reply.error()["message"].is_string());
  }
  // A NUL that JSON spells is a character like others.
  const auto nul =
      server.post_text(completions, R"({"prompt": "a\u0000b", "max_tokens": 0, "echo": true})");
  EXPECT_EQ(nul.status, 200) << nul.body;
  EXPECT_EQ(nul.json()["choices"][0]["text"].get<std::string>(), std::string("a\0b", 3));
}

TEST(Refusals, ModelsPathsAndMethods) {
  ToyServer server;
  expect_error(server.post(completions, {{"prompt", "a"}, {"model", "gpt-4"}}), 404, "model",
               "\"toy\"");
  EXPECT_EQ(server.post(completions, {{"prompt", "a"}, {"model", "toy"}}).status, 200);
  expect_error(server.get("/v1/nothing"), 404, "", "/v1/completions");
  const auto wrong = server.get(completions);
  expect_error(wrong, 405, "", "POST");
  EXPECT_EQ(wrong.headers.at("Allow"), "POST");
  expect_error(server.post("/v1/models", {}), 405, "", "GET");
  EXPECT_EQ(server.get("/v1/models").json()["data"][0]["id"], "toy");
  EXPECT_EQ(server.get("/v1/models/toy").json()["id"], "toy");
  EXPECT_EQ(server.get("/health").json()["status"], "ok");
}

TEST(Refusals, APromptThatFillsTheContext) {
  ToyServer server({.engine = {.generator = {.context = 10}}});
  const auto reply = server.post(completions, {{"prompt", std::string(10, 'a')}});
  expect_error(reply, 400, "prompt", "10 tokens");
  EXPECT_EQ(reply.error()["code"], "context_length_exceeded");
  // Scoring needs no room, and an answer is cut where the context ends.
  EXPECT_EQ(server.post(completions, {{"prompt", std::string(10, 'a')}, {"max_tokens", 0}}).status,
            200);
  const auto cut = server.post(
      completions, {{"prompt", std::string(8, 'a')}, {"max_tokens", 50}, {"ignore_eos", true}});
  EXPECT_EQ(cut.json()["usage"]["completion_tokens"], 2);
  EXPECT_EQ(cut.json()["choices"][0]["finish_reason"], "length");
}

TEST(Refusals, NoChatFormatAndNoMeLayer) {
  ToyServer server({.chat = false, .me_layer = std::nullopt});
  const Json messages = Json::array({{{"role", "user"}, {"content", "a"}}});
  expect_error(server.post(chats, {{"messages", messages}}), 400, "messages", "--chat-format");
  expect_error(server.post(completions, {{"prompt", "a"}, {"wemask", "on"}}), 400, "wemask", "ME");
}

TEST(Refusals, TheKey) {
  ToyServer server({.service = {.api_key = "secret"}});
  const Json body{{"prompt", "a"}, {"max_tokens", 1}};
  for (const auto* given : {"", "Bearer", "Bearer secre", "Bearer secret2", "Bearer Secret",
                            "secret", "Basic secret"}) {
    const auto reply = server.post(completions, body, {{"Authorization", given}});
    expect_error(reply, 401, "", "key");
    EXPECT_EQ(reply.headers.count("WWW-Authenticate"), 1U);
  }
  expect_error(server.get("/v1/models"), 401, "", "key");
  EXPECT_EQ(server.post(completions, body, {{"Authorization", "Bearer secret"}}).status, 200);
  EXPECT_EQ(server.get("/health").status, 200);
  EXPECT_EQ(server.get("/").status, 200);
}

TEST(Refusals, PagesOfOtherOrigins) {
  ToyServer server;
  const Json body{{"prompt", "a"}, {"max_tokens", 1}};
  const std::string own = str_cat("http://127.0.0.1:", server.http().port());
  expect_error(server.post(completions, body, {{"Origin", "http://evil.example"}}), 403, "",
               "--allow-origin");
  const auto reply = server.post(completions, body, {{"Origin", own}});
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.headers.count("Access-Control-Allow-Origin"), 0U);
  ToyServer open({.service = {.origins = {"http://good.example"}}});
  const auto allowed = open.post(completions, body, {{"Origin", "http://good.example"}});
  EXPECT_EQ(allowed.status, 200);
  EXPECT_EQ(allowed.headers.at("Access-Control-Allow-Origin"), "http://good.example");
  EXPECT_EQ(open.post(completions, body, {{"Origin", "http://evil.example"}}).status, 403);
}

// A name that its owner points at this machine makes a page of its own origin (DNS rebinding).
TEST(Refusals, NamesThatAreNotTheServers) {
  ToyServer server;
  const Json body{{"prompt", "a"}, {"max_tokens", 1}};
  const std::string port = str_cat(":", server.http().port());
  for (const auto& host :
       {"evil.example" + port, std::string("evil.example"), std::string("localhost.evil.example"),
        std::string("127.0.0.1.evil.example"), std::string("localhost:80@evil.example"),
        std::string("192.0.2.1")}) {
    expect_error(server.post(completions, body, {{"Host", host}, {"Origin", "http://" + host}}),
                 403, "", "is not called");
    expect_error(server.get("/", {{"Host", host}}), 403, "", "is not called");
  }
  for (const auto* host : {"localhost", "LocalHost:1", "127.0.0.1:8080", "[::1]:80", "[::1]"}) {
    EXPECT_EQ(server.post(completions, body, {{"Host", host}}).status, 200) << host;
  }
  // A key is what such a page lacks, and an origin that is let in may be called by its name.
  ToyServer keyed({.service = {.api_key = "secret"}});
  EXPECT_EQ(keyed.get("/health", {{"Host", "evil.example"}}).status, 200);
  ToyServer named({.service = {.origins = {"https://good.example"}}});
  EXPECT_EQ(named.get("/health", {{"Host", "good.example"}}).status, 200);
  EXPECT_EQ(named.get("/health", {{"Host", "evil.example"}}).status, 403);
}

TEST(Refusals, WhichNamesAServerHas) {
  EXPECT_TRUE(names_server("box.lan:8080", "box.lan"));
  EXPECT_TRUE(names_server("BOX.lan", "box.lan"));
  EXPECT_FALSE(names_server("box.lan.evil", "box.lan"));
  EXPECT_TRUE(names_server("[fe80::1]:80", "fe80::1"));
  for (const auto* all : {"0.0.0.0", "::"}) {
    EXPECT_TRUE(names_server("192.0.2.1:80", all));
    EXPECT_TRUE(names_server("[2001:db8::1]:80", all));
    EXPECT_TRUE(names_server("localhost", all));
    EXPECT_FALSE(names_server("evil.example:80", all));
    EXPECT_FALSE(names_server("[evil]", all));
    EXPECT_FALSE(names_server("1.2.3", all));
  }
  EXPECT_FALSE(names_server("[::1", "127.0.0.1"));
  EXPECT_FALSE(names_server("localhost:x", "127.0.0.1"));
  EXPECT_FALSE(names_server("", "127.0.0.1"));
}

TEST(Refusals, MoreAnswersThanFitAtATime) {
  ToyServer server({.engine = {.generator = {.max_rows = 2}, .queue = 3}});
  const Json body{{"prompt", "a"}, {"max_tokens", 1}, {"n", 6}};
  expect_error(server.post(completions, body), 400, "n", "6 answers are more than the 5");
  const Json five{{"prompt", "a"}, {"max_tokens", 1}, {"n", 5}};
  EXPECT_EQ(server.post(completions, five).json()["choices"].size(), 5U);
}

TEST(Refusals, SinksNeedTwoTokens) {
  ToyServer server;
  constexpr const char* sinks = "/onset/sinks";
  expect_error(server.post(sinks, {{"ids", {1, 2, 3}}, {"answer", "a"}}), 400, "answer",
               "not with ids");
  expect_error(server.post(sinks, {{"prompt", ""}}), 400, "prompt", "prompt: is empty");
  expect_error(server.post(sinks, {{"prompt", "a"}}), 400, "prompt", "single token");
  expect_error(server.post(sinks, {{"ids", {1}}}), 400, "ids", "single token");
  EXPECT_EQ(server.post(sinks, {{"ids", {1, 2, 3}}}).status, 200);
}

}  // namespace
}  // namespace onset::testing
