// Chromium, driven by its debugging protocol over pipes: a page is opened, waited for, and asked.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "onset/base/json.h"
#include "support/support.h"

namespace onset::testing {

// Its path; empty where there is none.
[[nodiscard]] std::string browser_path();

class Browser {
 public:
  Browser();
  ~Browser();
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  void open(const std::string& address, int width, int height);
  // The value of a JavaScript expression.
  [[nodiscard]] OrderedJson value(const std::string& expression);
  // Asks until the expression is true; false after a minute.
  [[nodiscard]] bool wait_for(const std::string& expression);
  // What the page's scripts threw, and what was logged as an error.
  [[nodiscard]] const std::vector<std::string>& errors() const { return errors_; }

 private:
  OrderedJson call(const std::string& method, const OrderedJson& parameters,
                   const std::string& session = {});

  TemporaryFolder profile_;
  pid_t child_ = -1;
  int to_ = -1;
  int from_ = -1;
  int number_ = 0;
  std::string read_;
  std::string session_;
  std::vector<std::string> errors_;
};

}  // namespace onset::testing
