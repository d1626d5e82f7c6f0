#include "onset/serve/http_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <thread>

#include "onset/base/error.h"
#include "onset/serve/connection_threads.h"
#include "onset/serve/http_chunks.h"
#include "onset/serve/http_connection.h"

namespace onset {
namespace {

// httplib's handlers get no way to the connection that they answer: it is noted for the thread that
// serves it while it does.
thread_local HttpConnection* current_connection = nullptr;
// Whether the connection that this thread takes is one too many.
thread_local bool is_overloaded = false;

class CurrentConnection {
 public:
  explicit CurrentConnection(HttpConnection& connection) { current_connection = &connection; }
  ~CurrentConnection() { current_connection = nullptr; }
  CurrentConnection(const CurrentConnection&) = delete;
  CurrentConnection& operator=(const CurrentConnection&) = delete;
};

const char* reason_of(int status) {
  switch (status) {
    case 408:
      return "Request Timeout";
    case 431:
      return "Request Header Fields Too Large";
    default:
      return "Service Unavailable";
  }
}

// SO_REUSEPORT, which httplib sets, would let two servers share a port without a word.
void set_socket_options(socket_t socket) {
  const int yes = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
}

HttpRequest as_request(const httplib::Request& request) {
  HttpRequest result;
  result.method = request.method;
  result.path = request.path;
  result.header = [&request](const std::string& name) { return request.get_header_value(name); };
  result.client_is_there = [connection = current_connection] {
    return connection->client_is_there();
  };
  return result;
}

bool is_chunked(const httplib::Request& request) { return request.has_header("Transfer-Encoding"); }

// Where a body ends and which host is asked must be beyond doubt: a proxy that sees another end
// would take what follows for a request of its own. Empty where they are.
std::string framing_fault(const httplib::Request& request) {
  const auto [begin, end] = request.headers.equal_range("Content-Length");
  for (auto it = begin; it != end; ++it) {
    const auto& length = it->second;
    const bool number =
        !length.empty() && length.size() <= 18 &&
        std::all_of(length.begin(), length.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!number) return "Content-Length is no number";
    if (length != begin->second) return "two values of Content-Length differ";
  }
  const auto hosts = request.get_header_value_count("Host");
  if (hosts > 1) return "Host is given twice";
  if (hosts == 0 && request.version == "HTTP/1.1") return "Host is missing";
  if (!is_chunked(request)) return {};
  if (begin != end) return "a body has Content-Length or Transfer-Encoding, not both";
  auto coding = request.get_header_value("Transfer-Encoding");
  for (char& c : coding) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const bool once = request.get_header_value_count("Transfer-Encoding") == 1;
  return once && coding == "chunked" ? "" : "Transfer-Encoding is taken as \"chunked\" alone";
}

void fill(httplib::Response& response, HttpReply reply) {
  response.status = reply.status;
  for (const auto& [name, value] : reply.headers) response.set_header(name, value);
  if (!reply.stream) {
    response.set_content(reply.body, reply.content_type);
    return;
  }
  auto stream = std::make_shared<decltype(reply.stream)>(std::move(reply.stream));
  response.set_chunked_content_provider(
      reply.content_type, [stream](std::size_t /*offset*/, httplib::DataSink& sink) {
        std::string piece;
        bool more = false;
        try {
          more = (*stream)(piece);
        } catch (...) {
          return false;  // the headers are gone: all that can be said is that the body ends early
        }
        if (!piece.empty() && !sink.write(piece.data(), piece.size())) return false;
        if (!more) sink.done();
        return sink.is_writable();
      });
}

}  // namespace

struct HttpServer::Impl final : public httplib::Server {
  Impl(HttpServerOptions given, HttpHandler& answers)
      : options(std::move(given)), handler(answers) {
    new_task_queue = [this] {
      return new ConnectionThreads(options.max_connections,
                                   [](bool overloaded) { is_overloaded = overloaded; });
    };
    set_tcp_nodelay(true);
    httplib::Server::set_socket_options(onset::set_socket_options);
    set_payload_max_length(options.max_body_bytes);
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      return before_body(request, response) ? HandlerResponse::Handled : HandlerResponse::Unhandled;
    });
    for (const auto& path : options.post_paths) {
      Post(path, [this](const httplib::Request& request, httplib::Response& response,
                        const httplib::ContentReader& reader) {
        answer_with_body(request, response, reader);
      });
    }
    set_error_handler([this](const httplib::Request& /*request*/, httplib::Response& response) {
      if (response.body.empty()) explain(response);
    });
    set_keep_alive_timeout(options.keep_alive.count());
    set_keep_alive_max_count(1U << 20U);
    bind();
  }

  void bind() {
    errno = 0;
    if (options.port == 0) {
      port = bind_to_any_port(options.host);
    } else if (bind_to_port(options.host, options.port)) {
      port = options.port;
    }
    if (port <= 0 || svr_sock_ == INVALID_SOCKET) {
      throw resource_error(str_cat("cannot listen on ", options.host, " port ", options.port,
                                   errno != 0 ? str_cat(": ", std::strerror(errno)) : ""),
                           "another server may use the port: give another one, or --port 0 for any "
                           "that is free");
    }
    // httplib lets five connections wait; a burst of clients is larger.
    ::listen(svr_sock_, 512);
  }

  // What httplib found wrong by itself.
  void explain(httplib::Response& response) {
    if (current_connection->head_exceeded()) {
      fail(response, 431, head_is_too_large());
    } else if (response.status == 414) {
      fail(response, 414, "the address that is asked for is longer than 8192 bytes");
    } else if (current_connection->exceeded()) {
      fail(response, 413, "the request is larger than the server takes");
    } else if (current_connection->timed_out()) {
      fail(response, 408, request_is_late);
    } else {
      fail(response, response.status, "the request is no valid HTTP");
    }
  }

  void fail(httplib::Response& response, int status, const std::string& message) {
    current_connection->close_after_reply();
    response.status = status;
    response.set_header("Connection", "close");
    response.set_content(handler.error_body(status, message), "application/json");
  }

  void fail_for_size(httplib::Response& response) {
    fail(response, 413, str_cat("the body is larger than ", options.max_body_bytes, " bytes"));
  }

  // True when the request is answered without its body.
  bool before_body(const httplib::Request& request, httplib::Response& response) {
    const bool takes_body =
        request.method == "POST" && std::find(options.post_paths.begin(), options.post_paths.end(),
                                              request.path) != options.post_paths.end();
    const bool has_body = request.has_header("Content-Length")
                              ? request.get_header_value("Content-Length") != "0"
                              : is_chunked(request);
    if (const auto fault = framing_fault(request); !fault.empty()) {
      fail(response, 400, fault);
      return true;
    }
    const auto asked = as_request(request);
    if (auto refusal = handler.refuse(asked)) {
      if (has_body) current_connection->close_after_reply();
      fill(response, std::move(*refusal));
      return true;
    }
    if (takes_body) {
      if (!request.has_header("Content-Length") && !is_chunked(request)) {
        fail(response, 411, "the request has no body: it needs Content-Length, or chunks");
        return true;
      }
      if (request.get_header_value<std::uint64_t>("Content-Length") > options.max_body_bytes) {
        fail_for_size(response);
        return true;
      }
      const auto encoding = request.get_header_value("Content-Encoding");
      if (!encoding.empty() && encoding != "identity") {
        fail(response, 415, "a compressed body is not taken: send it as it is");
        return true;
      }
      if (request.is_multipart_form_data()) {
        fail(response, 415, "a form is not taken: send JSON, with Content-Type: application/json");
        return true;
      }
      return false;
    }
    if (has_body) current_connection->close_after_reply();
    fill(response, handler.handle(asked));
    return true;
  }

  void answer_with_body(const httplib::Request& request, httplib::Response& response,
                        const httplib::ContentReader& reader) {
    auto asked = as_request(request);
    if (is_chunked(request)) {
      finish(read_chunks(*current_connection, options.max_body_bytes, asked.body), asked, response);
      return;
    }
    bool too_large = false;
    const bool complete = reader([&](const char* data, std::size_t size) {
      too_large = asked.body.size() + size > options.max_body_bytes;
      if (!too_large) asked.body.append(data, size);
      return !too_large;
    });
    too_large = too_large || response.status == 413;
    finish(too_large  ? BodyEnd::too_large
           : complete ? BodyEnd::complete
                      : BodyEnd::cut,
           asked, response);
  }

  // Answers by how the body ended.
  void finish(BodyEnd end, const HttpRequest& asked, httplib::Response& response) {
    if (end == BodyEnd::too_large || current_connection->exceeded()) {
      fail_for_size(response);
    } else if (current_connection->timed_out()) {
      fail(response, 408, "the body did not come to its end in time");
    } else if (end == BodyEnd::damaged) {
      fail(response, 400, "the body's chunks are damaged");
    } else if (end == BodyEnd::cut) {
      fail(response, 400, "the body ended early");
    } else {
      fill(response, handler.handle(asked));
    }
  }

  // A reply to what httplib gives none.
  void reply_directly(HttpConnection& connection, int status, const std::string& message) {
    const auto body = handler.error_body(status, message);
    const auto bytes = str_cat(
        "HTTP/1.1 ", status, " ", reason_of(status),
        "\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ", body.size(),
        status == 503 ? "\r\nRetry-After: 1" : "", "\r\n\r\n", body);
    connection.write(bytes.data(), bytes.size());
    connection.close_after_reply();
  }

  // Takes no time: the thread that takes connections runs it.
  bool refuse_connection(socket_t socket) {
    HttpConnection connection(socket, {.write_timeout = std::chrono::seconds(0)});
    reply_directly(connection, 503,
                   str_cat("the server has as many connections as it takes (",
                           options.max_connections, "): try again later"));
    connection.drain(std::chrono::milliseconds(0));
    ::shutdown(socket, SHUT_RDWR);
    ::close(socket);
    return true;
  }

  // A request that ended before httplib knew what it asks for.
  void explain_silence(HttpConnection& connection) {
    if (connection.has_replied()) return;
    if (connection.head_exceeded()) {
      reply_directly(connection, 431, head_is_too_large());
    } else if (connection.timed_out()) {
      reply_directly(connection, 408, request_is_late);
    }
  }

  bool process_and_close_socket(socket_t socket) override {
    if (is_overloaded) return refuse_connection(socket);
    HttpConnection connection(socket, {.request_bytes = options.max_body_bytes + (64U << 10U),
                                       .read_timeout = options.read_timeout,
                                       .write_timeout = options.write_timeout});
    const CurrentConnection current(connection);
    const auto is_stopping = [this] { return stopping.load() || svr_sock_ == INVALID_SOCKET; };
    while (connection.wait_for_request(options.keep_alive, is_stopping)) {
      connection.begin_request();
      bool closed = false;
      if (!process_request(connection, is_stopping(), closed, nullptr)) {
        explain_silence(connection);
        break;
      }
      if (closed || connection.is_closing()) break;
    }
    if (connection.is_closing()) connection.drain(std::chrono::seconds(1));
    ::shutdown(socket, SHUT_RDWR);
    ::close(socket);
    return true;
  }

  static std::string head_is_too_large() {
    const HttpConnection::Limits limits;
    return str_cat("the request's head is larger than the server takes: ", limits.head_lines - 1,
                   " headers, ", limits.header_bytes, " bytes in each of them, ",
                   limits.head_bytes >> 10U, " KiB in all");
  }
  static constexpr const char* request_is_late = "the request did not come to its end in time";

  HttpServerOptions options;
  HttpHandler& handler;
  int port = 0;
  std::atomic<bool> stopping = false;
  std::atomic<bool> serving = false;
};

HttpServer::HttpServer(HttpServerOptions options, HttpHandler& handler)
    : impl_(std::make_unique<Impl>(std::move(options), handler)) {}

HttpServer::~HttpServer() = default;

int HttpServer::port() const { return impl_->port; }

std::string HttpServer::url() const {
  const auto& host = impl_->options.host;
  const bool six = host.find(':') != std::string::npos;
  return str_cat("http://", six ? "[" : "", host, six ? "]" : "", ":", impl_->port);
}

void HttpServer::run() {
  impl_->serving = true;
  if (!impl_->stopping) impl_->listen_after_bind();
  impl_->serving = false;
}

void HttpServer::stop() {
  impl_->stopping = true;
  // httplib's stop() does nothing while its loop has not begun.
  while (impl_->serving) {
    if (impl_->is_running()) {
      impl_->stop();
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace onset
