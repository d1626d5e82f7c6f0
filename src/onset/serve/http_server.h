// The HTTP side, on cpp-httplib: connections, limits and streams; what is answered is up to the
// handler. Torch-free, and the only header of this room's that stands on httplib in its source.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace onset {

struct HttpRequest {
  std::string method;
  std::string path;  // without the query
  std::string body;
  // The value of a header by its name in any case; empty where it is missing.
  std::function<std::string(const std::string& name)> header;
  // False as soon as the client closed the connection, or its writing half. Valid while the request
  // is handled.
  std::function<bool()> client_is_there;
};

struct HttpReply {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
  // In place of `body`: called on the connection's thread for one piece after the other. May wait a
  // while and give an empty piece, so that a client that left is noticed; false after the last
  // piece. Destroyed when the reply ends, also where the client left.
  std::function<bool(std::string& piece)> stream = nullptr;
};

class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // Called before the body is read; a reply here is the answer.
  [[nodiscard]] virtual std::optional<HttpReply> refuse(const HttpRequest& request) = 0;
  // Called on many threads at a time. Must not throw.
  [[nodiscard]] virtual HttpReply handle(const HttpRequest& request) = 0;
  // The body of an answer that the server itself gives: a request that is no HTTP, one that is too
  // large (413, 414, 431), one that ends early, a connection too many (503).
  [[nodiscard]] virtual std::string error_body(int status, const std::string& message) = 0;
};

struct HttpServerOptions {
  std::string host = "127.0.0.1";
  int port = 0;  // 0: any that is free
  std::size_t max_body_bytes = std::size_t{8} << 20;
  std::size_t max_connections = 1024;  // one more is refused with 503
  // Paths that take a body, with POST.
  std::vector<std::string> post_paths = {};
  std::chrono::seconds read_timeout{30};   // for all of a request
  std::chrono::seconds write_timeout{30};  // for a client that does not read
  std::chrono::seconds keep_alive{10};     // an idle connection is kept
};

class HttpServer {
 public:
  // Binds the address. Throws a resource error where it cannot be had.
  HttpServer(HttpServerOptions options, HttpHandler& handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] int port() const;
  // http://127.0.0.1:8080
  [[nodiscard]] std::string url() const;
  // Serves until stop(), then waits for the handlers.
  void run();
  // From any thread, once run() has been called or is about to be. Streams end where they are.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace onset
