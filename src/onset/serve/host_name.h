// Which names a server without a key answers to. Torch-free.
#pragma once

#include <string>

namespace onset {

// Whether the value of a Host header (a name or an address, and a port that may be left out) is
// this machine or the address that the server listens on: localhost, 127.0.0.1, [::1], or
// `address`; where that is all of the machine's (0.0.0.0, ::), any IP address. Names in any case.
[[nodiscard]] bool names_server(const std::string& host, const std::string& address);

}  // namespace onset
