#include "onset/serve/http_connection.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace onset {
namespace {

using Clock = std::chrono::steady_clock;

// The events that came within `wait`; 0 when none did.
short wait_for(int socket, short events, std::chrono::milliseconds wait) {
  pollfd entry{socket, events, 0};
  const auto until = Clock::now() + wait;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    const int count = ::poll(&entry, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (count > 0) return entry.revents;
    if (count == 0 || errno != EINTR) return 0;
  }
}

void address_of(const sockaddr_storage& address, socklen_t length, std::string& ip, int& port) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> service{};
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, host.data(), host.size(),
                    service.data(), service.size(), NI_NUMERICHOST | NI_NUMERICSERV) == 0) {
    ip = host.data();
    port = std::atoi(service.data());
  }
}

}  // namespace

bool HttpConnection::wait_for_request(std::chrono::seconds patience,
                                      const std::function<bool()>& stopping) {
  const auto until = Clock::now() + patience;
  while (begin_ == end_) {
    if (stopping() || Clock::now() >= until) return false;
    if (wait_for(socket_, POLLIN, std::chrono::milliseconds(100)) != 0) return fill();
  }
  return true;
}

void HttpConnection::begin_request() {
  received_ = end_ - begin_;
  exceeded_ = head_exceeded_ = timed_out_ = replied_ = false;
  in_head_ = true;
  head_bytes_ = head_lines_ = line_bytes_ = 0;
  deadline_ = Clock::now() + limits_.read_timeout;
}

void HttpConnection::drain(std::chrono::milliseconds patience) const {
  ::shutdown(socket_, SHUT_WR);
  std::array<char, 16384> waste{};
  const auto until = Clock::now() + patience;
  const auto step = std::min(patience, std::chrono::milliseconds(100));
  do {
    if (wait_for(socket_, POLLIN, step) == 0) return;
    if (::recv(socket_, waste.data(), waste.size(), MSG_DONTWAIT) <= 0) return;
  } while (Clock::now() < until);
}

bool HttpConnection::client_is_there() const {
  const short events = wait_for(socket_, POLLRDHUP, std::chrono::milliseconds(0));
  return (events & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) == 0;
}

bool HttpConnection::is_readable() const {
  return begin_ < end_ || wait_for(socket_, POLLIN, limits_.read_timeout) != 0;
}

bool HttpConnection::fill() {
  for (;;) {
    const ssize_t count = ::recv(socket_, buffer_.data(), buffer_.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    begin_ = 0;
    end_ = static_cast<std::size_t>(count);
    received_ += end_;
    return true;
  }
}

ssize_t HttpConnection::read(char* ptr, std::size_t size) {
  if (begin_ == end_) {
    if (received_ > limits_.request_bytes) {
      exceeded_ = closing_ = true;
      return -1;
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now());
    timed_out_ = left.count() <= 0 || wait_for(socket_, POLLIN, left) == 0;
    if (timed_out_ || !fill()) {
      closing_ = true;
      return -1;
    }
  }
  const std::size_t count = std::min(size, end_ - begin_);
  std::memcpy(ptr, buffer_.data() + begin_, count);
  begin_ += count;
  if (in_head_ && !follow_head(ptr, count)) {
    head_exceeded_ = closing_ = true;
    return -1;
  }
  return static_cast<ssize_t>(count);
}

bool HttpConnection::follow_head(const char* ptr, std::size_t size) {
  for (std::size_t i = 0; i < size && in_head_; ++i) {
    ++head_bytes_;
    ++line_bytes_;
    if (ptr[i] == '\n') {
      // A line of its break alone ends the head, once there is one to end.
      in_head_ = head_lines_ == 0 || line_bytes_ != 2 || last_byte_ != '\r';
      ++head_lines_;
      line_bytes_ = 0;
    }
    last_byte_ = ptr[i];
    // httplib itself says so of a request's line that is too long.
    const bool header_is_long = head_lines_ > 0 && line_bytes_ > limits_.header_bytes;
    if (header_is_long || head_bytes_ > limits_.head_bytes ||
        (in_head_ && head_lines_ > limits_.head_lines)) {
      return false;
    }
  }
  return true;
}

ssize_t HttpConnection::write(const char* ptr, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t count = ::send(socket_, ptr + done, size - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) {
      done += static_cast<std::size_t>(count);
      replied_ = true;
      continue;
    }
    const bool busy = count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
    if (!busy || (wait_for(socket_, POLLOUT, limits_.write_timeout) & POLLOUT) == 0) {
      closing_ = true;
      return -1;
    }
  }
  return static_cast<ssize_t>(size);
}

void HttpConnection::get_remote_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getpeername(socket_, reinterpret_cast<sockaddr*>(&address), &length) == 0) {
    address_of(address, length, ip, port);
  }
}

void HttpConnection::get_local_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length) == 0) {
    address_of(address, length, ip, port);
  }
}

}  // namespace onset
