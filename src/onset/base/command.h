// Another program, run by the shell: text in, text out, a limit of time. Torch-free.
#pragma once

#include <string>
#include <string_view>

namespace onset {

// Runs `command` by /bin/sh, gives it `input` and returns what it printed; what it writes on stderr
// goes where ours goes. It runs in a process group of its own, so that Ctrl-C reaches this program
// alone, and the whole group ends with this call. Throws an input error that names the command
// where it cannot be started, takes longer than `seconds`, prints more than 64 MiB, or ends with
// another exit code than 0. Reading less than all of the input is its own affair.
[[nodiscard]] std::string run_command(const std::string& command, std::string_view input,
                                      double seconds);

}  // namespace onset
