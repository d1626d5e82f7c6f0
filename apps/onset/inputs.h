// What a verb reads and writes, so that no output replaces an input or another output.
#pragma once

#include <string>
#include <vector>

namespace onset::app {

// The paths a verb was given to read.
struct InputPaths {
  std::vector<std::string> models = {};  // folders, .gguf files, tokenizer files
  std::vector<std::string> files = {};   // JSONL
  bool standard_input = false;
};

// A usage error when `output` is a file that the verb reads, by whatever name (a link is the file
// it leads to): an input itself, any file in a model's folder, another part of a split GGUF file.
// `option` names the output in the message. Nothing is refused that is not there yet.
void refuse_overwriting(const std::string& option, const std::string& output,
                        const InputPaths& inputs);

// Whether two outputs name one file, by whatever names, also where it is not there yet. Never for
// devices, which both may write to.
[[nodiscard]] bool same_output(const std::string& a, const std::string& b);

}  // namespace onset::app
