// One TCP connection as httplib reads and writes it, with limits that its own lacks: on the head,
// the bytes and the time of a whole request. Torch-free.
#pragma once

#include <httplib.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

namespace onset {

class HttpConnection final : public httplib::Stream {
 public:
  struct Limits {
    std::size_t request_bytes = 0;  // head and body
    std::size_t head_bytes = std::size_t{32} << 10;
    std::size_t head_lines = 101;     // the request's line and its headers
    std::size_t header_bytes = 8192;  // one of them
    std::chrono::seconds read_timeout{30};
    std::chrono::seconds write_timeout{30};
  };

  // Does not own the socket.
  HttpConnection(int socket, const Limits& limits) : socket_(socket), limits_(limits) {}

  // Waits for the first byte of a request; false when none came in time, the client closed, or
  // `stopping` says so.
  [[nodiscard]] bool wait_for_request(std::chrono::seconds patience,
                                      const std::function<bool()>& stopping);
  void begin_request();
  // Nothing more is read as a request: what the client sent was not read to its end.
  void close_after_reply() { closing_ = true; }
  [[nodiscard]] bool is_closing() const { return closing_; }
  [[nodiscard]] bool exceeded() const { return exceeded_; }
  [[nodiscard]] bool head_exceeded() const { return head_exceeded_; }
  [[nodiscard]] bool timed_out() const { return timed_out_; }
  // Whether anything of a reply to this request was sent.
  [[nodiscard]] bool has_replied() const { return replied_; }
  // Lets the client read the last reply before the connection is cut: a close with unread bytes
  // would throw it away. Waits so long at most.
  void drain(std::chrono::milliseconds patience) const;
  [[nodiscard]] bool client_is_there() const;

  [[nodiscard]] bool is_readable() const override;
  [[nodiscard]] bool is_writable() const override { return client_is_there(); }
  ssize_t read(char* ptr, std::size_t size) override;
  ssize_t write(const char* ptr, std::size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  [[nodiscard]] socket_t socket() const override { return socket_; }

 private:
  [[nodiscard]] bool fill();
  // Whether the head, with these bytes of it or of the body behind it, keeps to its limits.
  [[nodiscard]] bool follow_head(const char* ptr, std::size_t size);

  int socket_;
  Limits limits_;
  std::array<char, 16384> buffer_{};
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t received_ = 0;  // of this request
  std::chrono::steady_clock::time_point deadline_;
  bool exceeded_ = false;
  bool head_exceeded_ = false;
  bool timed_out_ = false;
  bool replied_ = false;
  bool in_head_ = true;
  std::size_t head_bytes_ = 0;
  std::size_t head_lines_ = 0;
  std::size_t line_bytes_ = 0;  // of the line that is being read
  char last_byte_ = 0;
  bool closing_ = false;
};

}  // namespace onset
