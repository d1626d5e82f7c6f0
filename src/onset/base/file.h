// Files: read-only memory maps, whole-file reads, and writes that appear whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "onset/base/error.h"

namespace onset {

// "PATH: cannot WHAT: the system's reason" as a resource error, with what to do where the disk is
// full. `code` is an errno.
[[nodiscard]] Error file_error(std::string_view what, const std::filesystem::path& path, int code);

// Writes all of `bytes` to a file descriptor. 0, or the errno of what stopped it.
[[nodiscard]] int write_all(int descriptor, std::string_view bytes);

// Makes the folder and those it lies in, where they are missing. Throws a resource error.
void make_folder(const std::filesystem::path& path);

// A whole file mapped read-only and shared. Copies share one map; the last one unmaps it.
// Pages count as the page cache's, not as this process's data.
class MappedFile {
 public:
  // Throws an input error when the file cannot be opened or is not a regular file.
  // An empty file gives an empty span.
  static MappedFile open(const std::filesystem::path& path);

  [[nodiscard]] std::span<const std::byte> bytes() const;
  [[nodiscard]] const std::filesystem::path& path() const;

  // Hints for the kernel about a range of the file (rounded to pages). `will_need` starts reading
  // ahead; `drop` gives the pages of the range back, they are read again when touched. With
  // `evict`, drop also asks the page cache to forget them (for measuring cold reads).
  void will_need(std::size_t offset, std::size_t length) const;
  void drop(std::size_t offset, std::size_t length, bool evict = false) const;

 private:
  struct Map;
  std::shared_ptr<const Map> map_;
};

// Reads a whole file. Throws an input error that names the path; `max_bytes` bounds what is
// accepted, so that a wrong path to a huge file does not fill the memory.
[[nodiscard]] std::string read_file(const std::filesystem::path& path,
                                    std::size_t max_bytes = std::size_t{1} << 30);

// A file that appears under its final name only when commit() has succeeded: written to a temporary
// name beside it, fsynced, renamed. Without commit() nothing is left behind. Any failed write, at
// the latest commit(), throws a resource error (disk full, no permission) that names the path.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(std::span<const std::byte> data);
  void write(std::string_view text);
  // Overwrites bytes already written (a header whose content is known at the end).
  void write_at(std::uint64_t offset, std::span<const std::byte> data);
  // Moves everything written so far back by `count` bytes; what then stands before it is undefined.
  void insert_front(std::uint64_t count);
  [[nodiscard]] std::uint64_t size() const { return size_; }
  void commit();

 private:
  [[noreturn]] void fail() const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;  // empty while the file has no name
  std::FILE* file_ = nullptr;
  std::uint64_t size_ = 0;
};

// AtomicFile for content that is at hand.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

}  // namespace onset
