// What tests share: where their data lies, temporary folders, files read in one go.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "onset/base/json.h"

namespace onset::testing {

// tests/data/RELATIVE.
[[nodiscard]] std::filesystem::path data(std::string_view relative);
// Vocabularies unpacked from tests/data/tokenizers/vocabularies.tar.xz: "tokenizers/qwen3".
[[nodiscard]] std::filesystem::path unpacked(std::string_view relative);
// The demonstration model that scripts/setup fetched; empty when it is not there.
[[nodiscard]] std::filesystem::path demo_model();

// References too large for the repository, in a folder beside it; empty when they are not there.
[[nodiscard]] std::filesystem::path shared_fixture(std::string_view relative);
// tests/data/RELATIVE, or where the repository does not hold it the shared fixture; empty when
// that is not there either.
[[nodiscard]] std::filesystem::path any_fixture(std::string_view relative);

[[nodiscard]] std::vector<OrderedJson> read_jsonl(const std::filesystem::path& path);

// A folder that vanishes with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // Writes a file into the folder and gives its path.
  [[nodiscard]] std::filesystem::path write(std::string_view name, std::string_view content) const;

 private:
  std::filesystem::path path_;
};

// The message of the onset::Error that `action` throws, hint included; fails the test when it
// throws nothing or something else.
template <typename Action>
std::string error_of(Action&& action);

[[nodiscard]] std::string describe_current_exception();

}  // namespace onset::testing

#include "support/support_impl.h"
