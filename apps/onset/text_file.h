// A file of running text, for verbs that need more than prompts.
#pragma once

#include <string>

namespace onset::app {

// All of it. Input errors name the file: it cannot be read, is empty, or is not UTF-8 (at which
// byte). `option` names it in hints ("--text").
[[nodiscard]] std::string read_text(const std::string& path, const std::string& option);

}  // namespace onset::app
