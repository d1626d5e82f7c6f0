#include "onset/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

namespace onset {
namespace {

std::string reason() { return std::strerror(errno); }

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

struct OpenFile {
  int fd;
  std::size_t size;
};

std::size_t range_end(std::size_t offset, std::size_t length, std::size_t size) {
  return length > size - offset ? size : offset + length;  // offset lies below size
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

// The first name beside `path` for which `make` succeeds; `make` fails with EEXIST for a name that
// is taken. Returns its result.
template <typename Make>
int make_beside(const std::filesystem::path& path, std::filesystem::path& name, Make&& make) {
  for (unsigned attempt = 0;; ++attempt) {
    // Not the final name with an ending, which may be too long.
    name = folder_of(path) / str_cat(".onset-", ::getpid(), "-", attempt, ".tmp");
    const int result = make(name.c_str());
    if (result >= 0 || errno != EEXIST) return result;
  }
}

// A new file in the folder of `path`, with the permissions that the umask leaves. Where the file
// system can, it has no name, so that not even a killed process leaves it behind; else `temporary`
// gets its name.
int create_beside(const std::filesystem::path& path, std::filesystem::path& temporary) {
  temporary.clear();
  const int unnamed = ::open(folder_of(path).c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
  if (unnamed >= 0) return unnamed;
  return make_beside(path, temporary, [](const char* name) {
    return ::open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  });
}

// Gives a file without a name one beside `path`.
int name_beside(int fd, const std::filesystem::path& path, std::filesystem::path& temporary) {
  const std::string source = str_cat("/proc/self/fd/", fd);
  return make_beside(path, temporary, [&](const char* name) {
    return ::linkat(AT_FDCWD, source.c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW);
  });
}

// Where a symbolic link leads, also when nothing is there yet: a link keeps pointing where it did,
// its target is what is written.
std::filesystem::path link_target(std::filesystem::path path) {
  constexpr int most_links = 40;  // as the kernel
  std::error_code error;
  for (int i = 0; i < most_links && std::filesystem::is_symlink(path, error); ++i) {
    const auto target = std::filesystem::read_symlink(path, error);
    if (error) break;
    path = target.is_absolute() ? target : folder_of(path) / target;
  }
  return path;
}

OpenFile open_regular(const std::filesystem::path& path) {
  // Without O_NONBLOCK, opening a pipe would wait for its writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  require_input(fd >= 0, path.string(), ": cannot open: ", reason());
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    throw input_error(str_cat(path.string(), ": is not a regular file"));
  }
  return {fd, static_cast<std::size_t>(info.st_size)};
}

}  // namespace

Error file_error(std::string_view what, const std::filesystem::path& path, int code) {
  return resource_error(
      str_cat(path.string(), ": cannot ", what, ": ", std::strerror(code)),
      code == ENOSPC || code == EDQUOT ? "free some space, or write elsewhere" : "");
}

int write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

void make_folder(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw file_error("make the folder", path, error.value());
}

struct MappedFile::Map {
  std::filesystem::path path;
  int fd = -1;
  void* data = nullptr;
  std::size_t size = 0;

  Map() = default;
  Map(const Map&) = delete;
  Map& operator=(const Map&) = delete;
  ~Map() {
    if (data != nullptr) ::munmap(data, size);
    if (fd >= 0) ::close(fd);
  }
};

MappedFile MappedFile::open(const std::filesystem::path& path) {
  auto map = std::make_shared<Map>();
  map->path = path;
  const OpenFile file = open_regular(path);
  map->fd = file.fd;
  map->size = file.size;
  if (file.size > 0) {
    void* data = ::mmap(nullptr, file.size, PROT_READ, MAP_SHARED, file.fd, 0);
    if (data == MAP_FAILED) {
      throw resource_error(
          str_cat(path.string(), ": cannot map ", file.size, " bytes: ", reason()));
    }
    map->data = data;
  }
  MappedFile result;
  result.map_ = std::move(map);
  return result;
}

std::span<const std::byte> MappedFile::bytes() const {
  return {static_cast<const std::byte*>(map_->data), map_->size};
}

const std::filesystem::path& MappedFile::path() const { return map_->path; }

void MappedFile::will_need(std::size_t offset, std::size_t length) const {
  if (offset >= map_->size || length == 0) return;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t begin = offset / page * page;
  const std::size_t end = range_end(offset, length, map_->size);
  ::madvise(static_cast<std::byte*>(map_->data) + begin, end - begin, MADV_WILLNEED);
}

void MappedFile::drop(std::size_t offset, std::size_t length, bool evict) const {
  if (offset >= map_->size || length == 0) return;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  // Only whole pages: a neighbour may still be in use.
  const std::size_t begin = (offset + page - 1) / page * page;
  const std::size_t end = range_end(offset, length, map_->size) / page * page;
  if (begin >= end) return;
  ::madvise(static_cast<std::byte*>(map_->data) + begin, end - begin, MADV_DONTNEED);
  if (evict) {
    ::posix_fadvise(map_->fd, static_cast<off_t>(begin), static_cast<off_t>(end - begin),
                    POSIX_FADV_DONTNEED);
  }
}

std::string read_file(const std::filesystem::path& path, std::size_t max_bytes) {
  const OpenFile file = open_regular(path);
  const Descriptor descriptor(file.fd);
  require_input(file.size <= max_bytes, path.string(), ": ", file.size, " bytes is more than the ",
                max_bytes, " expected of such a file");
  std::string content(file.size, '\0');
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t got = ::read(descriptor.get(), content.data() + done, content.size() - done);
    if (got < 0 && errno == EINTR) continue;
    require_input(got >= 0, path.string(), ": cannot read: ", reason());
    if (got == 0) break;  // shrank while reading
    done += static_cast<std::size_t>(got);
  }
  content.resize(done);
  return content;
}

AtomicFile::AtomicFile(std::filesystem::path path) : path_(link_target(std::move(path))) {
  const auto refuse = [&](const char* why, const char* hint) {
    throw resource_error(str_cat(path_.string(), ": ", why), hint);
  };
  struct stat existing {};
  const bool exists = ::stat(path_.c_str(), &existing) == 0;
  if (!exists && errno != ENOENT) refuse(std::strerror(errno), "name another file");
  if (exists && S_ISDIR(existing.st_mode)) refuse("is a folder", "name a file");
  if (exists && !S_ISREG(existing.st_mode)) refuse("is no regular file and is not replaced", "");
  if (path_.filename().string().size() > NAME_MAX) refuse("the name is too long", "");
  const int fd = create_beside(path_, temporary_);
  if (fd < 0) {
    throw resource_error(str_cat(path_.string(), ": cannot write: ", reason()),
                         "name a file in a folder that exists and can be written");
  }
  // A file that is replaced keeps its permissions.
  if (exists) ::fchmod(fd, existing.st_mode & 07777);
  file_ = ::fdopen(fd, "w+b");
  if (file_ == nullptr) {
    const std::string why = reason();
    ::close(fd);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
    throw resource_error(str_cat(path_.string(), ": cannot write: ", why));
  }
}

AtomicFile::~AtomicFile() {
  if (file_ == nullptr) return;
  std::fclose(file_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::fail() const { throw file_error("write", path_, errno); }

void AtomicFile::write(std::span<const std::byte> data) {
  if (!data.empty() && std::fwrite(data.data(), 1, data.size(), file_) != data.size()) fail();
  size_ += data.size();
}

void AtomicFile::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void AtomicFile::write_at(std::uint64_t offset, std::span<const std::byte> data) {
  if (::fseeko(file_, static_cast<off_t>(offset), SEEK_SET) != 0 ||
      std::fwrite(data.data(), 1, data.size(), file_) != data.size() ||
      ::fseeko(file_, 0, SEEK_END) != 0) {
    fail();
  }
}

void AtomicFile::insert_front(std::uint64_t count) {
  constexpr std::uint64_t chunk_bytes = std::uint64_t{4} << 20U;
  std::vector<std::byte> chunk(std::min(size_, chunk_bytes));
  // From the end, so that nothing is overwritten before it has moved.
  for (std::uint64_t end = size_; end > 0;) {
    const std::uint64_t length = std::min(end, chunk_bytes);
    end -= length;
    const auto moved = std::span(chunk).first(length);
    if (::fseeko(file_, static_cast<off_t>(end), SEEK_SET) != 0 ||
        std::fread(moved.data(), 1, length, file_) != length) {
      fail();
    }
    write_at(end + count, moved);
  }
  size_ += count;
}

void AtomicFile::commit() {
  if (std::fflush(file_) != 0 || ::fsync(::fileno(file_)) != 0) fail();
  if (temporary_.empty() && name_beside(::fileno(file_), path_, temporary_) < 0) {
    temporary_.clear();
    fail();
  }
  std::FILE* closing = std::exchange(file_, nullptr);
  if (std::fclose(closing) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int why = errno;
    ::unlink(temporary_.c_str());
    errno = why;
    fail();
  }
  const Descriptor parent(::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (parent.get() >= 0) ::fsync(parent.get());
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

}  // namespace onset
