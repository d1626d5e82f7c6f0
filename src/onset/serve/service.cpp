#include "onset/serve/service.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/model/model.h"
#include "onset/serve/answer.h"
#include "onset/serve/api_error.h"
#include "onset/serve/event_stream.h"
#include "onset/serve/host_name.h"
#include "onset/serve/masked_sinks.h"
#include "onset/serve/page.h"

namespace onset {
namespace {

constexpr std::chrono::milliseconds look_around{200};  // how often a waiting handler does

std::string text_of(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

HttpReply json_reply(const OrderedJson& json) { return {.body = text_of(json)}; }

HttpReply error_reply(const ApiError& error) {
  const auto& details = error.details();
  HttpReply reply{.status = details.status, .body = text_of(error.json())};
  if (details.retry_after > 0) {
    reply.headers.emplace_back("Retry-After", std::to_string(details.retry_after));
  }
  if (details.status == 401) reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  return reply;
}

// In time that depends on the lengths alone, so that answers do not tell how much was right.
bool equal_in_constant_time(const std::string& given, const std::string& wanted) {
  unsigned difference = given.size() == wanted.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto a = static_cast<unsigned char>(given[i]);
    const auto b = static_cast<unsigned char>(wanted[i % wanted.size()]);
    difference |= static_cast<unsigned>(a ^ b);
  }
  return difference == 0;
}

const std::vector<std::pair<std::string, std::string>>& routes() {
  static const std::vector<std::pair<std::string, std::string>> table{
      {"GET", "/"},
      {"GET", "/health"},
      {"GET", "/v1/models"},
      {"POST", "/v1/completions"},
      {"POST", "/v1/chat/completions"},
      {"POST", "/onset/sinks"}};
  return table;
}

// Without a key: the page, which asks for it, and whether the server is up.
bool is_open(const std::string& path) { return path == "/" || path == "/health"; }

}  // namespace

Service::Service(const ServedModel& served, Engine& engine, MaskChooser& masks,
                 ServiceOptions options)
    : served_(served),
      engine_(engine),
      masks_(masks),
      options_(std::move(options)),
      started_(static_cast<std::int64_t>(std::time(nullptr))) {}

std::vector<std::string> Service::post_paths() {
  std::vector<std::string> paths;
  for (const auto& [method, path] : routes()) {
    if (method == "POST") paths.push_back(path);
  }
  return paths;
}

// A browser names the page's origin with every request that may do something. Another site's page
// must not use a server that listens on the user's own machine.
bool Service::is_allowed_origin(const HttpRequest& request) const {
  const auto origin = request.header("Origin");
  if (origin.empty()) return true;
  const auto host = request.header("Host");
  if (origin == "http://" + host || origin == "https://" + host) return true;
  return std::any_of(options_.origins.begin(), options_.origins.end(),
                     [&](const auto& allowed) { return allowed == "*" || allowed == origin; });
}

// A page can come from a name that its owner then points at this machine: its requests are of its
// own origin, and only their Host tells. A browser always sends one; a key is what such a page
// lacks.
bool Service::is_allowed_host(const HttpRequest& request) const {
  const auto host = request.header("Host");
  if (!options_.api_key.empty() || host.empty() || names_server(host, options_.host)) return true;
  return std::any_of(options_.origins.begin(), options_.origins.end(), [&](const auto& allowed) {
    return allowed == "*" || allowed == "http://" + host || allowed == "https://" + host;
  });
}

void Service::allow_origin(const HttpRequest& request, HttpReply& reply) const {
  const auto origin = request.header("Origin");
  if (origin.empty() || options_.origins.empty() || !is_allowed_origin(request)) return;
  reply.headers.emplace_back("Access-Control-Allow-Origin", origin);
  reply.headers.emplace_back("Vary", "Origin");
}

std::optional<HttpReply> Service::refuse(const HttpRequest& request) {
  if (!is_allowed_host(request)) {
    return error_reply(
        {str_cat("this server is not called ", quote(request.header("Host"), 80),
                 ": ask it as localhost, 127.0.0.1 or by its --host, start it with an API key, or "
                 "name the origin with --allow-origin"),
         {.status = 403, .code = "host_not_allowed"}});
  }
  if (!is_allowed_origin(request)) {
    return error_reply({str_cat("pages of ", quote(request.header("Origin"), 80),
                                " may not use this server; --allow-origin names those that may"),
                        {.status = 403, .code = "origin_not_allowed"}});
  }
  if (request.method == "OPTIONS" && !options_.origins.empty()) {
    HttpReply reply{.status = 204};
    allow_origin(request, reply);
    reply.headers.emplace_back("Access-Control-Allow-Methods", "GET, POST");
    reply.headers.emplace_back("Access-Control-Allow-Headers", "Authorization, Content-Type");
    return reply;
  }
  if (options_.api_key.empty() || is_open(request.path)) return std::nullopt;
  const auto given = request.header("Authorization");
  if (equal_in_constant_time(given, "Bearer " + options_.api_key)) return std::nullopt;
  auto reply =
      error_reply({given.empty() ? "this server asks for an API key: send the header "
                                   "Authorization: Bearer KEY"
                                 : "the API key is not the server's",
                   {.status = 401, .type = "authentication_error", .code = "invalid_api_key"}});
  allow_origin(request, reply);
  return reply;
}

HttpReply Service::handle(const HttpRequest& request) {
  HttpReply reply;
  try {
    reply = route(request);
  } catch (...) {
    reply = error_reply(current_api_error());
  }
  allow_origin(request, reply);
  return reply;
}

std::string Service::error_body(int status, const std::string& message) {
  ApiError::Details details{.status = status};
  if (status >= 500) details.type = "server_error";
  return text_of(ApiError(message, details).json());
}

HttpReply Service::route(const HttpRequest& request) {
  const auto& method = request.method == "HEAD" ? std::string("GET") : request.method;
  const auto& path = request.path;
  if (method == "GET" && path == "/") {
    return {.content_type = "text/html; charset=utf-8",
            .body = std::string(serve_page()),
            .headers = {{"Content-Security-Policy", serve_page_policy()},
                        {"Cache-Control", "no-store"}}};
  }
  if (method == "GET" && path == "/health") return json_reply(health());
  if (method == "GET" && path == "/v1/models") return json_reply(models());
  if (method == "GET" && path == "/v1/models/" + served_.id) return json_reply(model());
  if (method == "POST" && path == "/v1/completions") {
    return complete(
        request, read_completion(parse_json(request.body, "the request's body"), served_, masks_));
  }
  if (method == "POST" && path == "/v1/chat/completions") {
    return complete(request,
                    read_chat(parse_json(request.body, "the request's body"), served_, masks_));
  }
  if (method == "POST" && path == "/onset/sinks") {
    return sinks(parse_json(request.body, "the request's body"));
  }
  std::vector<std::string> methods;
  for (const auto& [known_method, known_path] : routes()) {
    if (known_path == path) methods.push_back(known_method);
  }
  if (!methods.empty()) {
    auto reply = error_reply(
        {str_cat(path, " is asked with ", join(methods, ", "), ", not ", request.method),
         {.status = 405, .code = "method_not_allowed"}});
    reply.headers.emplace_back("Allow", join(methods, ", "));
    return reply;
  }
  if (method == "GET" && path.starts_with("/v1/models/")) {
    throw ApiError(str_cat("the model ", quote(path.substr(11), 80),
                           " is not here; this server has ", quote(served_.id)),
                   {.status = 404, .code = "model_not_found"});
  }
  std::vector<std::string> paths;
  for (const auto& [known_method, known_path] : routes()) paths.push_back(known_path);
  throw ApiError(
      str_cat("nothing is at ", quote(path, 80), "; this server has ", join(paths, ", ")),
      {.status = 404, .code = "not_found"});
}

HttpReply Service::complete(const HttpRequest& request, CompletionCall call) {
  if (!call.fields.stream) return answer_whole(request, call);
  return answer_stream(std::make_shared<CompletionCall>(std::move(call)));
}

HttpReply Service::answer_whole(const HttpRequest& request, const CompletionCall& call) {
  const auto running = engine_.start(call.requests);
  Answer answer(call, served_);
  const auto begun = std::chrono::steady_clock::now();
  while (!running->is_done()) {
    // Nobody reads the reply, and destroying `running` ends the work.
    if (!request.client_is_there()) return {.status = 499};
    if (options_.time_limit.count() > 0 &&
        std::chrono::steady_clock::now() - begun > options_.time_limit) {
      throw time_limit_error(options_.time_limit);
    }
    if (const auto update = running->next(look_around)) answer.add(*update);
  }
  return json_reply(answer.whole());
}

HttpReply Service::answer_stream(std::shared_ptr<CompletionCall> call) {
  auto running = engine_.start(call->requests);
  auto stream = std::make_shared<EventStream>(std::move(call), served_, std::move(running),
                                              options_.time_limit);
  return {.content_type = "text/event-stream",
          .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}},
          .stream = [stream](std::string& piece) { return stream->next(piece); }};
}

HttpReply Service::sinks(const Json& body) {
  Fields fields(body, "");
  const auto mask = masks_.choose(fields.find("wemask"));
  const auto chat_options = read_chat_options(fields);
  const auto answer = fields.text("answer");
  const Json* given_ids = fields.find("ids");
  const Json* messages = fields.find("messages");
  const auto prompt = fields.text("prompt");
  static_cast<void>(fields.text("model"));
  fields.refuse_others();
  const int count = (given_ids != nullptr) + (messages != nullptr) + prompt.has_value();
  if (count != 1) {
    throw bad_field("ids", "give one of ids, messages and prompt; answer goes with the last two");
  }
  std::vector<std::int64_t> ids;
  if (given_ids != nullptr) {
    if (answer) throw bad_field("answer", "answer: goes with messages or prompt, not with ids");
    ids = read_ids(*given_ids, served_, "ids");
  } else if (messages != nullptr) {
    auto conversation = read_messages(*messages);
    auto options = chat_options;
    if (answer) {
      conversation.push_back({{"role", "assistant"}, {"content", *answer}});
      options.add_generation_prompt = false;
    }
    ids = encode_messages(served_, conversation, options);
  } else {
    ids = encode_raw(served_, *prompt + answer.value_or(""));
  }
  if (ids.size() < 2) {
    const std::string given = given_ids != nullptr ? "ids" : prompt ? "prompt" : "messages";
    throw bad_field(given, str_cat(given, ids.empty() ? ": is empty" : ": is a single token",
                                   "; a sink needs a token that follows the first one"));
  }
  if (served_.context > 0 && static_cast<std::int64_t>(ids.size()) > served_.context) {
    throw ApiError(
        str_cat("the text has ", ids.size(), " tokens, more than the context of ", served_.context),
        {.code = "context_length_exceeded"});
  }
  SinkSummary summary;
  engine_.run([&] { summary = first_token_sinks(served_.model, ids, mask.spec.get()); });
  OrderedJson layers = OrderedJson::array();
  for (std::size_t layer = 0; layer < summary.layer_rate.size(); ++layer) {
    layers.push_back({{"layer", layer},
                      {"sink_rate", finite_or_null(summary.layer_rate[layer])},
                      {"mean_alpha", finite_or_null(summary.layer_alpha[layer])}});
  }
  return json_reply({{"object", "onset.sinks"},
                     {"tokens", ids.size()},
                     {"threshold", SinkOptions().threshold},
                     {"sink_rate", finite_or_null(summary.sink_rate)},
                     {"layers", layers},
                     {"onset", {{"wemask", mask.summary}}}});
}

OrderedJson Service::model() const {
  const auto& config = served_.model.config();
  OrderedJson about{{"layers", config.layer_count()},
                    {"hidden", config.hidden},
                    {"context", served_.context},
                    {"chat_format", nullptr},
                    {"wemask", masks_.choose(nullptr).summary}};
  if (served_.chat_format) about["chat_format"] = served_.chat_format->name;
  return {{"id", served_.id},
          {"object", "model"},
          {"created", started_},
          {"owned_by", "onset"},
          {"onset", about}};
}

OrderedJson Service::models() const {
  return {{"object", "list"}, {"data", OrderedJson::array({model()})}};
}

OrderedJson Service::health() const {
  const auto counts = engine_.counts();
  return {{"status", "ok"},
          {"running", counts.running},
          {"waiting", counts.waiting},
          {"prompt_tokens", counts.prompt_tokens},
          {"reused_tokens", counts.reused_tokens},
          {"generated_tokens", counts.generated_tokens},
          {"passes", counts.passes}};
}

}  // namespace onset
