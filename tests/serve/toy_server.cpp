#include "serve/toy_server.h"

#include <arpa/inet.h>
#include <httplib.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "onset/base/error.h"
#include "support/toy.h"
#include "tokenizer/small_tokenizer.h"

namespace onset::testing {
namespace {

Reply reply_of(const httplib::Result& result) {
  Reply reply;
  if (!result) return reply;
  reply.status = result->status;
  reply.body = result->body;
  for (const auto& [name, value] : result->headers) reply.headers[name] = value;
  return reply;
}

httplib::Client client(int port) {
  httplib::Client client("127.0.0.1", port);
  client.set_read_timeout(60);
  return client;
}

httplib::Headers as_headers(const ToyServer::Headers& headers) {
  return {headers.begin(), headers.end()};
}

}  // namespace

ToyModel::ToyModel() {
  Toy toy;
  toy.config["vocab_size"] = 258;
  toy.config["hidden_size"] = 16;
  toy.config["max_position_embeddings"] = 100000;
  toy.config["eos_token_id"] = 257;
  toy.draw(7);
  toy.write(folder.path());
  Json tokenizer_json = small_tokenizer({});
  tokenizer_json["added_tokens"] =
      Json::array({added_token("<|im_start|>", 256), added_token("<|im_end|>", 257)});
  static_cast<void>(folder.write("tokenizer.json", tokenizer_json.dump()));
  const Json config{{"eos_token", "<|im_end|>"},
                    {"chat_template",
                     "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + "
                     "message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"}};
  static_cast<void>(folder.write("tokenizer_config.json", config.dump()));
  model.emplace(Model::open(folder.path(), {.residency = Residency::resident}));
  tokenizer.emplace(Tokenizer::open(folder.path()));
}

const ToyModel& toy_model() {
  static const ToyModel model;
  return model;
}

Json letters() {
  Json bias = Json::object();
  for (int letter = 'a'; letter <= 'z'; ++letter) bias[std::to_string(letter)] = 100;
  return bias;
}

std::map<std::int64_t, double> letter_bias() {
  std::map<std::int64_t, double> bias;
  for (int letter = 'a'; letter <= 'z'; ++letter) bias[letter] = 100;
  return bias;
}

OrderedJson Reply::json() const {
  auto value = OrderedJson::parse(body, nullptr, false);
  EXPECT_FALSE(value.is_discarded()) << status << " " << body;
  return value.is_discarded() ? OrderedJson::object() : value;
}

ToyServer::ToyServer(const ToyServerOptions& options) {
  const auto& toy = toy_model();
  engine_ = std::make_unique<Engine>(*toy.model, &*toy.tokenizer, options.engine);
  served_ = std::make_unique<ServedModel>(
      ServedModel{.model = *toy.model,
                  .tokenizer = *toy.tokenizer,
                  .id = "toy",
                  .chat_format = options.chat ? std::optional(chat_format("chatml")) : std::nullopt,
                  .context = options.engine.generator.context > 0 ? options.engine.generator.context
                                                                  : toy.model->config().context,
                  .parse_special = options.parse_special,
                  .seed = options.seed});
  masks_ = std::make_unique<MaskChooser>(*toy.model, options.mask, [me_layer = options.me_layer] {
    return FoundMassive{me_layer, {3}};
  });
  service_ = std::make_unique<Service>(*served_, *engine_, *masks_, options.service);
  auto http = options.http;
  http.post_paths = Service::post_paths();
  http_ = std::make_unique<HttpServer>(http, *service_);
  thread_ = std::make_unique<std::thread>([this] { http_->run(); });
}

ToyServer::~ToyServer() {
  engine_->stop();
  http_->stop();
  thread_->join();
}

Reply ToyServer::get(const std::string& path, const Headers& headers) {
  return reply_of(client(http_->port()).Get(path, as_headers(headers)));
}

Reply ToyServer::post(const std::string& path, const Json& body, const Headers& headers) {
  return post_text(path, body.dump(), headers);
}

Reply ToyServer::post_text(const std::string& path, const std::string& body,
                           const Headers& headers) {
  return reply_of(client(http_->port()).Post(path, as_headers(headers), body, "application/json"));
}

std::vector<OrderedJson> ToyServer::stream(const std::string& path, Json body) {
  body["stream"] = true;
  const auto reply = post(path, body);
  EXPECT_EQ(reply.status, 200) << reply.body;
  const auto type = reply.headers.find("Content-Type");
  EXPECT_TRUE(type != reply.headers.end() && type->second == "text/event-stream");
  std::vector<OrderedJson> events;
  std::size_t at = 0;
  bool done = false;
  while (at < reply.body.size()) {
    const auto end = reply.body.find("\n\n", at);
    if (end == std::string::npos) break;
    const auto event = reply.body.substr(at, end - at);
    at = end + 2;
    EXPECT_FALSE(done) << "behind [DONE]: " << event;
    EXPECT_TRUE(event.starts_with("data: ")) << event;
    done = event == "data: [DONE]";
    if (!done) events.push_back(OrderedJson::parse(event.substr(6)));
  }
  EXPECT_TRUE(done) << reply.body;
  return events;
}

int ToyServer::connect() const {
  const int connection = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(http_->port()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return connection;
}

std::string ToyServer::raw(const std::string& bytes, int patience_ms) {
  const int connection = connect();
  std::string text;
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const auto count = ::send(connection, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) break;  // the server has seen enough
    sent += static_cast<std::size_t>(count);
  }
  std::array<char, 4096> buffer{};
  for (;;) {
    pollfd entry{connection, POLLIN, 0};
    if (::poll(&entry, 1, patience_ms) <= 0) break;
    const auto count = ::recv(connection, buffer.data(), buffer.size(), 0);
    if (count <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  ::close(connection);
  return text;
}

std::string post_bytes(const std::string& path, const std::string& body,
                       const std::string& more_headers) {
  return str_cat("POST ", path, " HTTP/1.1\r\nHost: localhost\r\nContent-Length: ", body.size(),
                 "\r\n", more_headers, "\r\n", body);
}

bool eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 1000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace onset::testing
