// Starts the built program and waits for it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "onset/base/json.h"
#include "support/support.h"

namespace onset::testing {

struct Surroundings {
  std::string input = {};                     // standard input
  std::string input_path = {};                // a path in place of `input`
  std::string output = {};                    // a file for standard output; empty: it is caught
  bool reader_left = false;                   // standard output is a pipe that nobody reads
  bool output_closed = false;                 // there is no standard output
  std::string locale = "C.UTF-8";             // LC_ALL
  std::vector<std::string> environment = {};  // further "NAME=VALUE"
};

struct Outcome {
  int code = -1;  // exit code, or 128 + signal
  std::string out;
  std::string error;

  [[nodiscard]] OrderedJson json() const;                     // all of `out`
  [[nodiscard]] std::vector<OrderedJson> json_lines() const;  // each line of `out`
};

[[nodiscard]] Outcome run_onset(const std::vector<std::string>& arguments,
                                const Surroundings& surroundings = {});

// A wrong call or a failure: exit code, nothing on standard output, and a message that says so.
void expect_refusal(const Outcome& outcome, int code, const std::string& message_part);

// Columns of the widest line.
[[nodiscard]] std::size_t widest_line(const std::string& text);

[[nodiscard]] std::string model_path(const std::string& name);

}  // namespace onset::testing
