// Many clients, clients that leave, clients that are slow or hostile, and the end of the server.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "onset/base/error.h"
#include "serve/toy_server.h"

namespace onset::testing {
namespace {

constexpr const char* path = "/v1/completions";

Json endless() {
  return {{"prompt", "a"}, {"max_tokens", 90000}, {"ignore_eos", true}, {"logit_bias", letters()}};
}

ToyServerOptions one_row() { return {.engine = {.generator = {.max_rows = 1}, .queue = 0}}; }

// A request whose answer nobody waits for yet: its connection.
int begin(ToyServer& server, Json body, bool stream) {
  body["stream"] = stream;
  const int connection = server.connect();
  const auto bytes = post_bytes(path, body.dump());
  EXPECT_EQ(::send(connection, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  EXPECT_TRUE(eventually([&] { return server.engine().counts().running == 1; }));
  return connection;
}

TEST(Load, AClientThatLeavesFreesItsRow) {
  ToyServer server(one_row());
  for (const bool stream : {false, true}) {
    const int connection = begin(server, endless(), stream);
    ::close(connection);
    EXPECT_TRUE(eventually([&] { return server.engine().counts().running == 0; })) << stream;
    EXPECT_TRUE(eventually([&] { return server.engine().running_calls() == 0; })) << stream;
  }
  EXPECT_EQ(server.post(path, {{"prompt", "a"}, {"max_tokens", 2}}).status, 200);
}

TEST(Load, AFullQueueIs429) {
  ToyServer server(one_row());
  const int connection = begin(server, endless(), true);
  const auto reply = server.post(path, {{"prompt", "a"}, {"max_tokens", 2}});
  EXPECT_EQ(reply.status, 429) << reply.body;
  EXPECT_EQ(reply.error()["code"], "queue_full");
  EXPECT_EQ(reply.headers.at("Retry-After"), "1");
  ::close(connection);
  EXPECT_TRUE(eventually([&] { return server.engine().running_calls() == 0; }));
  EXPECT_EQ(server.post(path, {{"prompt", "a"}, {"max_tokens", 2}}).status, 200);
}

TEST(Load, TheTimeLimitEndsAnAnswer) {
  auto options = one_row();
  options.service.time_limit = std::chrono::seconds(1);
  ToyServer server(options);
  const auto whole = server.post(path, endless());
  EXPECT_EQ(whole.status, 504) << whole.body.substr(0, 200);
  EXPECT_EQ(whole.error()["code"], "time_limit");
  auto body = endless();
  body["stream"] = true;
  const auto streamed = server.post(path, body);
  EXPECT_EQ(streamed.status, 200);
  EXPECT_NE(streamed.body.find("\"time_limit\""), std::string::npos);
  EXPECT_TRUE(streamed.body.ends_with("data: [DONE]\n\n"));
  EXPECT_TRUE(eventually([&] { return server.engine().counts().running == 0; }));
}

TEST(Load, ConcurrentStreamsAreAllCompleteAndEqual) {
  ToyServer server({.engine = {.generator = {.max_rows = 8}, .queue = 100}});
  Json body{{"prompt", "Hello"}, {"max_tokens", 20}, {"temperature", 0}, {"logit_bias", letters()}};
  const std::string expected = server.post(path, body).json()["choices"][0]["text"];
  std::atomic<int> equal = 0;
  std::vector<std::thread> clients;
  clients.reserve(32);
  for (int i = 0; i < 32; ++i) {
    clients.emplace_back([&] {
      std::string text;
      for (const auto& event : server.stream(path, body)) {
        for (const auto& choice : event["choices"]) text += choice["text"].get<std::string>();
      }
      equal += text == expected ? 1 : 0;
    });
  }
  for (auto& client : clients) client.join();
  EXPECT_EQ(equal, 32);
  EXPECT_EQ(server.engine().running_calls(), 0);
}

TEST(Load, BodiesBeyondTheLimit) {
  ToyServerOptions options;
  options.http.max_body_bytes = 1000;
  ToyServer server(options);
  const auto large = server.post(path, {{"prompt", std::string(2000, 'a')}});
  EXPECT_EQ(large.status, 413) << large.body;
  EXPECT_TRUE(large.error()["message"].is_string());
  // A length that is promised and a body without a length.
  const auto promised = server.raw(str_cat("POST ", path, " HTTP/1.1\r\nHost: localhost\r\n",
                                           "Content-Length: 99999999999999\r\n\r\n{}"));
  EXPECT_NE(promised.find("413"), std::string::npos) << promised;
  std::string chunks =
      str_cat("POST ", path, " HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 2000; ++i) chunks += "40\r\n" + std::string(64, ' ') + "\r\n";
  const auto chunked = server.raw(chunks);
  EXPECT_NE(chunked.find(" 413 "), std::string::npos) << chunked.substr(0, 300);
  EXPECT_EQ(server.get("/health").status, 200);
}

TEST(Load, WhatIsNoHttp) {
  ToyServerOptions options;
  options.http.read_timeout = std::chrono::seconds(1);
  ToyServer server(options);
  EXPECT_NE(server.raw("hello\r\n\r\n").find(" 400 "), std::string::npos);
  EXPECT_NE(server.raw(str_cat("GET /", std::string(9000, 'a'), " HTTP/1.1\r\n\r\n")).find(" 414 "),
            std::string::npos);
  // A request that never ends is cut off.
  EXPECT_NE(server.raw("GET /health HTTP/1.1\r\nHost:").find(" 408 "), std::string::npos);
  EXPECT_EQ(server.raw(std::string(10, '\0')).find(" 200 "), std::string::npos);
  const auto zipped = server.raw(post_bytes(path, "{}", "Content-Encoding: gzip\r\n"));
  EXPECT_NE(zipped.find(" 415 "), std::string::npos) << zipped;
  const auto form =
      server.raw(post_bytes(path, "{}", "Content-Type: multipart/form-data; boundary=x\r\n"));
  EXPECT_NE(form.find(" 415 "), std::string::npos) << form;
  // What curl -d sends without a header of its own.
  const auto curl = server.raw(post_bytes(path, R"({"prompt": "a", "max_tokens": 1})",
                                          "Content-Type: application/x-www-form-urlencoded\r\n"
                                          "Connection: close\r\n"));
  EXPECT_NE(curl.find(" 200 "), std::string::npos) << curl;
  EXPECT_EQ(server.get("/health").status, 200);
}

// The head of a request has a size; each limit is kept by one below it and passed by one above.
TEST(Load, HeadsBeyondTheLimits) {
  ToyServerOptions options;
  options.http.read_timeout = std::chrono::seconds(1);
  ToyServer server(options);
  const auto request = [&](const std::string& headers) {
    return server.raw("GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + headers +
                      "\r\n");
  };
  const auto many = [](int count, std::size_t bytes) {
    std::string headers;
    for (int i = 0; i < count; ++i)
      headers += str_cat("X-", i, ": ", std::string(bytes, 'a'), "\r\n");
    return headers;
  };
  for (const auto& fits : {many(98, 1), many(1, 8000), many(4, 7500)}) {
    EXPECT_NE(request(fits).find(" 200 "), std::string::npos) << fits.size();
  }
  for (const auto& headers :
       {many(99, 1), many(100000, 1), many(1, 8192), many(1, 100000), many(5, 7500)}) {
    const auto reply = request(headers);
    EXPECT_TRUE(reply.starts_with("HTTP/1.1 431 ")) << headers.size() << " " << reply;
    EXPECT_NE(reply.find("100 headers"), std::string::npos) << reply;
  }
  // One that ends before it is known what it asks for.
  const auto address = server.raw(str_cat("GET /", std::string(100000, 'a')));
  EXPECT_TRUE(address.starts_with("HTTP/1.1 431 ")) << address;
  const auto late = server.raw("GET /hea");
  EXPECT_TRUE(late.starts_with("HTTP/1.1 408 ")) << late;
  // The limits are those of a head, and hold for each request of a connection anew.
  const std::string large =
      post_bytes(path, R"({"prompt": ")" + std::string(60000, 'a') + R"(", "max_tokens": 1})");
  const auto twice = server.raw(large + large);
  std::size_t answered = 0;
  for (std::size_t at = 0; (at = twice.find("HTTP/1.1 200 ", at)) != std::string::npos; ++at)
    ++answered;
  EXPECT_EQ(answered, 2U) << twice.substr(0, 300);
  for (const auto* hosts : {"", "Host: localhost\r\nHost: localhost\r\n"}) {
    const auto reply = server.raw(str_cat("GET /health HTTP/1.1\r\n", hosts, "\r\n"));
    EXPECT_TRUE(reply.starts_with("HTTP/1.1 400 ")) << hosts << reply;
  }
  EXPECT_EQ(server.get("/health").status, 200);
}

TEST(Load, ConnectionsBeyondTheLimitAreRefused) {
  ToyServerOptions options;
  options.http.max_connections = 2;
  ToyServer server(options);
  const int first = server.connect();
  const int second = server.connect();
  const auto reply = server.raw("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(reply.starts_with("HTTP/1.1 503 ")) << reply;
  EXPECT_NE(reply.find("Retry-After: 1"), std::string::npos) << reply;
  const auto begin = std::min(reply.find("\r\n\r\n"), reply.size() - 4) + 4;
  EXPECT_NE(Json::parse(reply.substr(begin))["error"]["message"].get<std::string>().find(
                "as many connections as it takes (2)"),
            std::string::npos);
  ::close(second);
  EXPECT_TRUE(eventually([&] { return server.get("/health").status == 200; }));
  ::close(first);
}

// Where a body ends must be beyond doubt, and what can never be read is not waited for.
TEST(Load, BodiesWhoseEndIsInDoubt) {
  ToyServer server;
  const std::string start = str_cat("POST ", path, " HTTP/1.1\r\nHost: localhost\r\n");
  const std::string chunked = start + "Transfer-Encoding: chunked\r\n\r\n";
  const std::string body = R"({"prompt": "a", "max_tokens": 1})";
  const std::string next = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const std::vector<std::pair<std::string, std::string>> cases{
      {start + "Content-Length: 32\r\nContent-Length: 5\r\n\r\n" + body, "400"},
      {start + "Content-Length: abc\r\n\r\n" + body, "400"},
      {start + "Content-Length: -1\r\n\r\n" + body, "400"},
      {start + "Content-Length: 32, 32\r\n\r\n" + body, "400"},
      {start + "Content-Length: 32\r\nTransfer-Encoding: chunked\r\n\r\n" + body, "400"},
      {start + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "400"},
      {start + "\r\n" + next, "411"},
      {chunked + "-5\r\nhello\r\n0\r\n\r\n", "400"},
      {chunked + "x\r\nhello\r\n0\r\n\r\n", "400"},
      {chunked + "2\r\nhello\r\n0\r\n\r\n", "400"},
      {chunked + "fffffffffffffff0\r\nhello\r\n0\r\n\r\n", "413"},
      {chunked + "ffffffffffffffff0\r\nhello\r\n0\r\n\r\n", "400"},
  };
  for (const auto& [bytes, status] : cases) {
    const auto begun = std::chrono::steady_clock::now();
    const auto reply = server.raw(bytes, 20000);
    EXPECT_TRUE(reply.starts_with("HTTP/1.1 " + status)) << bytes << "\n" << reply;
    EXPECT_NE(reply.find("Connection: close"), std::string::npos) << reply;
    // One answer, and nothing behind it is taken for a request.
    EXPECT_EQ(reply.find("HTTP/1.1", 1), std::string::npos) << reply;
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(15)) << bytes;
  }
  const auto whole = server.raw(chunked + "10;x=1\r\n" + body.substr(0, 16) + "\r\n10\r\n" +
                                    body.substr(16) + "\r\n0\r\nTrailer: 1\r\n\r\n",
                                2000);
  EXPECT_TRUE(whole.starts_with("HTTP/1.1 200")) << whole;
}

TEST(Load, ABodyThatComesTooSlowly) {
  ToyServerOptions options;
  options.http.read_timeout = std::chrono::seconds(1);
  ToyServer server(options);
  const std::string start = str_cat("POST ", path, " HTTP/1.1\r\nHost: localhost\r\n");
  for (const auto* rest :
       {"Content-Length: 50\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n5\r\n{",
        "Transfer-Encoding: chunked\r\n\r\n5"}) {
    const auto reply = server.raw(start + rest, 20000);
    EXPECT_TRUE(reply.starts_with("HTTP/1.1 408")) << reply;
  }
}

TEST(Load, StoppingEndsWhatRuns) {
  ToyServer server(one_row());
  const int connection = begin(server, endless(), true);
  server.engine().refuse_calls();
  EXPECT_EQ(server.post(path, {{"prompt", "a"}}).status, 503);
  server.engine().stop();
  std::string text;
  std::array<char, 65536> buffer{};
  while (text.find("[DONE]") == std::string::npos) {
    const auto count = ::recv(connection, buffer.data(), buffer.size(), 0);
    ASSERT_GT(count, 0) << text.substr(text.size() > 300 ? text.size() - 300 : 0);
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  EXPECT_NE(text.find("the server is stopping"), std::string::npos);
  ::close(connection);
}

}  // namespace
}  // namespace onset::testing
