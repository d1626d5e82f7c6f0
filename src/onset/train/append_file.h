// A file that grows while a program runs, so that a killed one leaves all that it wrote.
// Torch-free.
#pragma once

#include <filesystem>
#include <string_view>

namespace onset {

class AppendFile {
 public:
  enum class Mode {
    truncate,    // empty, whatever stood there
    append,      // behind what stands there
    create_new,  // refuse a name that is taken
  };
  // Throws a resource error that names the path.
  AppendFile(std::filesystem::path path, Mode mode);
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&& other) noexcept;
  ~AppendFile();

  // All of it, or a resource error.
  void write(std::string_view bytes);
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace onset
