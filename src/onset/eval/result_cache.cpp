#include "onset/eval/result_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "onset/base/error.h"
#include "onset/base/file.h"

namespace onset {
namespace {

Error cannot(const std::string& what, const std::filesystem::path& path, int code) {
  return resource_error(str_cat("cannot ", what, " ", path.string(), ": ", std::strerror(code)),
                        "answers are kept there; choose another folder, or none");
}

void write_whole(int descriptor, std::string_view text, const std::filesystem::path& path) {
  if (const int error = write_all(descriptor, text); error != 0) throw cannot("write", path, error);
  if (::fsync(descriptor) != 0) throw cannot("write", path, errno);
}

bool ends_in_whole_line(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in || in.tellg() == 0) return true;
  in.seekg(-1, std::ios::end);
  return in.get() == '\n';
}

}  // namespace

ResultCache::ResultCache(const std::filesystem::path& folder, const std::string& scope,
                         const OrderedJson& about, int rank) {
  if (folder.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw cannot("make the folder", folder, error.value());
  const std::string stem = str_cat("answers-", scope, ".");
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(stem) && name.ends_with(".jsonl")) read(entry.path());
  }
  if (error) throw cannot("read the folder", folder, error.value());
  file_ = folder / str_cat(stem, rank, ".jsonl");
  open(about);
}

ResultCache::~ResultCache() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void ResultCache::open(const OrderedJson& about) {
  descriptor_ = ::open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw cannot("open", file_, errno);
  std::error_code error;
  if (std::filesystem::file_size(file_, error) == 0 && !error) {
    const OrderedJson header = {{"format", "onset answers"}, {"version", 1}, {"about", about}};
    write_whole(descriptor_, header.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n",
                file_);
  } else if (!ends_in_whole_line(file_)) {
    write_whole(descriptor_, "\n", file_);
  }
}

void ResultCache::read(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw cannot("read", file, errno);
  std::string line;
  while (std::getline(in, line)) {
    if (line.empty()) continue;
    const Json batch = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (batch.is_object() && batch.contains("format")) continue;
    if (!batch.is_object() || !batch.contains("answers") || !batch["answers"].is_array()) {
      if (!line.starts_with('{')) ++foreign_lines_;
      continue;
    }
    for (const Json& entry : batch["answers"]) {
      if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string()) continue;
      answers_.insert_or_assign(entry[0].get<std::string>(), entry[1]);
    }
  }
  if (in.bad()) throw cannot("read", file, errno);
}

const Json* ResultCache::find(const std::string& key) const {
  const auto found = answers_.find(key);
  return found == answers_.end() ? nullptr : &found->second;
}

const Json& ResultCache::at(const std::string& key) const {
  if (const Json* found = find(key)) return *found;
  throw std::logic_error("an answer that nobody gave");
}

void ResultCache::put(const std::vector<Entry>& batch) {
  if (batch.empty()) return;
  if (descriptor_ >= 0) {
    Json answers = Json::array();
    for (const auto& [key, value] : batch) answers.push_back(Json::array({key, value}));
    const Json line = {{"answers", std::move(answers)}};
    write_whole(descriptor_, line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n",
                file_);
  }
  add(batch);
}

void ResultCache::add(const std::vector<Entry>& entries) {
  for (const auto& [key, value] : entries) answers_.insert_or_assign(key, value);
}

}  // namespace onset
