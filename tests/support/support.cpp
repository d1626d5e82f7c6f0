#include "support/support.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace onset::testing {

std::filesystem::path data(std::string_view relative) {
  return std::filesystem::path(ONSET_TEST_DATA) / relative;
}

std::filesystem::path unpacked(std::string_view relative) {
  return std::filesystem::path(ONSET_TEST_UNPACKED) / relative;
}

std::filesystem::path demo_model() {
  auto path =
      std::filesystem::path(ONSET_SOURCE_DIR) / ".deps/models/smollm2-135m-instruct-q4_1.gguf";
  return std::filesystem::exists(path) ? path : std::filesystem::path();
}

std::filesystem::path shared_fixture(std::string_view relative) {
  const auto path =
      std::filesystem::path(ONSET_SOURCE_DIR).parent_path() / "shared/fixtures" / relative;
  return std::filesystem::exists(path) ? path : std::filesystem::path();
}

std::filesystem::path any_fixture(std::string_view relative) {
  auto path = data(relative);
  return std::filesystem::exists(path) ? path : shared_fixture(relative);
}

std::vector<OrderedJson> read_jsonl(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw input_error(str_cat(path.string(), ": cannot open"));
  std::vector<OrderedJson> rows;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) rows.push_back(OrderedJson::parse(line));
  }
  return rows;
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "onset-test-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw resource_error("no temporary folder");
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path TemporaryFolder::write(std::string_view name,
                                             std::string_view content) const {
  auto path = path_ / name;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  return path;
}

std::string describe_current_exception() {
  try {
    throw;
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "not a std::exception";
  }
}

}  // namespace onset::testing
