#include "onset/serve/host_name.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

namespace onset {
namespace {

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

bool is_port(const std::string& text) {
  return text.empty() ||
         (text.size() <= 6 && text.front() == ':' &&
          std::all_of(text.begin() + 1, text.end(), [](char c) { return c >= '0' && c <= '9'; }));
}

bool is_address(int family, const std::string& text) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return ::inet_pton(family, text.c_str(), bytes.data()) == 1;
}

}  // namespace

bool names_server(const std::string& host, const std::string& address) {
  const bool six = host.starts_with('[');
  const auto end = six ? host.find(']') : std::min(host.find(':'), host.size());
  if (end == std::string::npos) return false;
  const std::string name = lower(six ? host.substr(1, end - 1) : host.substr(0, end));
  if (!is_port(host.substr(six ? end + 1 : end))) return false;
  if (six && !is_address(AF_INET6, name)) return false;
  if (name == lower(address)) return true;
  if (six ? name == "::1" : name == "localhost" || name == "127.0.0.1") return true;
  const bool any = address.empty() || address == "0.0.0.0" || address == "::";
  return any && (six || is_address(AF_INET, name));
}

}  // namespace onset
