#include "onset/train/append_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "onset/base/file.h"

namespace onset {
namespace {

int flags_of(AppendFile::Mode mode) {
  switch (mode) {
    case AppendFile::Mode::truncate:
      return O_TRUNC;
    case AppendFile::Mode::create_new:
      return O_EXCL;
    case AppendFile::Mode::append:
      break;
  }
  return 0;
}

}  // namespace

AppendFile::AppendFile(std::filesystem::path path, Mode mode) : path_(std::move(path)) {
  descriptor_ =
      ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | flags_of(mode), 0666);
  if (descriptor_ < 0) throw file_error("write", path_, errno);
}

AppendFile::AppendFile(AppendFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

AppendFile& AppendFile::operator=(AppendFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

AppendFile::~AppendFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void AppendFile::write(std::string_view bytes) {
  if (const int error = write_all(descriptor_, bytes); error != 0) {
    throw file_error("write", path_, error);
  }
}

}  // namespace onset
