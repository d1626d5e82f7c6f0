// Exceptions as people read them, and the exit codes they mean.
#pragma once

#include <string>

#include "onset/base/ranks.h"

namespace onset::app {

struct Failure {
  std::string message;
  std::string hint;   // may be empty
  int exit_code = 1;  // 1 failed, 2 wrong use
};

// Of the exception being handled; call in a catch block only.
[[nodiscard]] Failure current_failure();

// "onset: MESSAGE" and the hint on standard error, as message_text() shows them: messages are built
// all over the library and hold names from files and command lines.
void report(const Failure& failure);

// For one of several ranks, in one line and last: what mpirun says of the end stands below it, and
// is long.
void report_end_of_ranks(const Failure& failure, const RankPlace& place);

}  // namespace onset::app
