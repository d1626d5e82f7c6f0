// Sound files, damaged in thousands of seeded ways: cut anywhere, bytes and whole fields changed.
// Opening gives a checkpoint whose tensors lie in the file, or throws onset::Error; it never
// crashes and never takes memory out of proportion to the file.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "checkpoint/files.h"
#include "onset/checkpoint/checkpoint.h"
#include "onset/checkpoint/gguf.h"
#include "support/support.h"

namespace onset {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;

// Bounds what may be allocated from now on, so that a lying count ends in std::bad_alloc, which is
// no onset::Error. Left out under AddressSanitizer, whose own memory counts too (it bounds a single
// allocation by itself).
class MemoryLimit {
 public:
  explicit MemoryLimit(std::size_t more_bytes) {
    ::getrlimit(RLIMIT_DATA, &before_);
#if !defined(__SANITIZE_ADDRESS__)
    std::ifstream status("/proc/self/status");
    std::size_t used_kib = 0;
    for (std::string word; status >> word;) {
      if (word == "VmData:") status >> used_kib;
    }
    const rlimit limit{used_kib * 1024 + more_bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_DATA, &limit);
#else
    (void)more_bytes;
#endif
  }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;
  ~MemoryLimit() { ::setrlimit(RLIMIT_DATA, &before_); }

 private:
  rlimit before_{};
};

constexpr std::size_t memory_allowance = std::size_t{32} << 20U;

// Touches what a user of the checkpoint would.
void use(const Checkpoint& model) {
  std::set<std::string> names;
  for (const TensorInfo& tensor : model.tensors()) {
    EXPECT_TRUE(names.insert(tensor.name).second);
    const auto bytes = model.data(tensor);
    EXPECT_EQ(bytes.size(), tensor.bytes);
    EXPECT_GE(tensor.elements(), 0);
    if (!bytes.empty()) {
      const volatile std::byte first = bytes.front();
      const volatile std::byte last = bytes.back();
      (void)first;
      (void)last;
    }
  }
  (void)model.config().dump();
}

// One file of a checkpoint in a folder of its own, changed in place and put right again.
class Victim {
 public:
  Victim(const fs::path& source, const std::string& file) : path_(folder_.path() / file) {
    if (fs::is_directory(source)) {
      for (const auto& entry : fs::directory_iterator(source)) {
        if (entry.is_regular_file()) {
          fs::copy_file(entry.path(), folder_.path() / entry.path().filename());
        }
      }
      opened_ = folder_.path();
    } else {
      fs::copy_file(source, path_);
      opened_ = path_;
    }
    content_ = read_file(path_);
    descriptor_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
  }
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;
  ~Victim() { ::close(descriptor_); }

  [[nodiscard]] const std::string& content() const { return content_; }

  // Where the values of the tensors begin: what stands before is structure.
  [[nodiscard]] std::size_t structure_bytes() const {
    const Checkpoint model = Checkpoint::open(opened_);
    std::size_t begin = content_.size();
    for (const TensorInfo& tensor : model.tensors()) begin = std::min(begin, tensor.offset);
    return begin;
  }

  // Did it open?
  bool try_cut(std::size_t size) {
    EXPECT_EQ(::ftruncate(descriptor_, static_cast<off_t>(size)), 0);
    const bool opened = try_open("cut to " + std::to_string(size) + " bytes");
    restore(size, content_.size() - size);
    return opened;
  }
  bool try_change(std::size_t at, std::string_view bytes, const std::string& how) {
    const std::size_t count = std::min(bytes.size(), content_.size() - at);
    put(at, bytes.substr(0, count));
    const bool opened = try_open(how + " at byte " + std::to_string(at));
    restore(at, count);
    return opened;
  }

 private:
  void put(std::size_t at, std::string_view bytes) const {
    EXPECT_EQ(::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(at)),
              static_cast<ssize_t>(bytes.size()));
  }
  void restore(std::size_t at, std::size_t count) const {
    put(at, std::string_view(content_).substr(at, count));
  }
  [[nodiscard]] bool try_open(const std::string& what) const {
    try {
      use(Checkpoint::open(opened_));
      return true;
    } catch (const Error& error) {
      EXPECT_TRUE(std::string_view(error.what()).starts_with(folder_.path().string() + '/'))
          << what << ": " << error.what();
      EXPECT_LT(std::string_view(error.what()).size(), 2000U) << what;
      return false;
    } catch (const std::exception& error) {
      ADD_FAILURE() << what << ": not an onset::Error: " << error.what();
      return false;
    }
  }

  TemporaryFolder folder_;
  fs::path path_;
  fs::path opened_;
  std::string content_;
  int descriptor_ = -1;
};

struct Source {
  const char* name;
  const char* path;  // below tests/data/models
  const char* file;
};

class Damaged : public ::testing::TestWithParam<Source> {
 protected:
  Victim victim_{testing::data(std::string("models/") + GetParam().path), GetParam().file};
  MemoryLimit limit_{memory_allowance};
  std::mt19937_64 random_{2026};
};

// Cut anywhere: the last tensor is incomplete, so that nothing shorter opens.
TEST_P(Damaged, ACutFileIsRefused) {
  const std::size_t size = victim_.content().size();
  const std::size_t structure = victim_.structure_bytes();
  std::set<std::size_t> cuts = {size - 1, structure, structure - 1, structure + 1};
  for (std::size_t at = 0; at < 64; ++at) cuts.insert(at);
  for (int i = 0; i < 400; ++i) cuts.insert(random_() % structure);
  for (int i = 0; i < 40; ++i) cuts.insert(random_() % size);
  for (const std::size_t cut : cuts) EXPECT_FALSE(victim_.try_cut(cut)) << cut;
}

TEST_P(Damaged, ChangedBytesAreReadOrRefused) {
  const std::size_t structure = victim_.structure_bytes();
  int opened = 0;
  for (int i = 0; i < 4000; ++i) {
    const char byte = static_cast<char>(random_());
    opened +=
        victim_.try_change(random_() % structure, std::string_view(&byte, 1), "a byte") ? 1 : 0;
  }
  // Most of the structure is names and values of which any will do, so both happen.
  EXPECT_GT(opened, 0);
  EXPECT_LT(opened, 4000);
}

TEST_P(Damaged, ChangedNumbersAreReadOrRefused) {
  const std::size_t structure = victim_.structure_bytes();
  constexpr std::uint64_t numbers[] = {0,
                                       1,
                                       9,
                                       0x7F,
                                       0xFF,
                                       0xFFFF,
                                       0x7FFFFFFF,
                                       0xFFFFFFFF,
                                       INT64_MAX,
                                       UINT64_MAX,
                                       UINT64_MAX - 7,
                                       std::uint64_t{1} << 32U,
                                       std::uint64_t{1} << 40U,
                                       std::uint64_t{1} << 61U,
                                       std::uint64_t{1} << 63U};
  for (int i = 0; i < 4000; ++i) {
    std::string field;
    testing::append(field, numbers[random_() % std::size(numbers)]);
    const std::size_t width = random_() % 2 == 0 ? 8 : 4;
    (void)victim_.try_change(random_() % structure, std::string_view(field).substr(0, width),
                             "a field");
  }
}

TEST_P(Damaged, ChangedRunsAreReadOrRefused) {
  const std::size_t structure = victim_.structure_bytes();
  for (int i = 0; i < 1000; ++i) {
    std::string run(1 + random_() % 200, '\0');
    for (char& byte : run) byte = static_cast<char>(random_());
    (void)victim_.try_change(random_() % structure, run, "a run of bytes");
  }
}

// A piece of the file itself over another: well-formed parts in the wrong place.
TEST_P(Damaged, MovedPiecesAreReadOrRefused) {
  const std::size_t structure = victim_.structure_bytes();
  for (int i = 0; i < 2000; ++i) {
    const std::size_t length = 1 + random_() % 100;
    const std::string piece = victim_.content().substr(random_() % structure, length);
    (void)victim_.try_change(random_() % structure, piece, "a moved piece");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Files, Damaged,
    ::testing::Values(Source{"safetensors", "llama", "model.safetensors"},
                      Source{"qwen3_safetensors", "qwen3", "model.safetensors"},
                      Source{"gguf", "llama/f32.gguf", "x.gguf"},
                      Source{"quantised_gguf", "llama_gguf/kmix.gguf", "x.gguf"}),
    [](const auto& run) { return std::string(run.param.name); });

// The index of a folder with shards.
class DamagedIndex : public ::testing::Test {
 protected:
  DamagedIndex() {
    for (const auto& [shard, tensor] : {std::pair("m-00001-of-00002.safetensors", "a"),
                                        std::pair("m-00002-of-00002.safetensors", "b")}) {
      (void)folder_.write(shard, testing::small_safetensors({tensor}));
    }
    (void)folder_.write("config.json", R"({"model_type":"llama"})");
    (void)folder_.write("model.safetensors.index.json", index_);
  }

  TemporaryFolder folder_;
  const std::string index_ = R"({"metadata":{"total_size":16},"weight_map":)"
                             R"({"a":"m-00001-of-00002.safetensors",)"
                             R"("b":"m-00002-of-00002.safetensors"}})";
};

TEST_F(DamagedIndex, IsReadOrRefused) {
  Victim victim(folder_.path(), "model.safetensors.index.json");
  const MemoryLimit limit(memory_allowance);
  std::mt19937_64 random(5);
  for (std::size_t cut = 0; cut < index_.size(); ++cut) EXPECT_FALSE(victim.try_cut(cut));
  for (int i = 0; i < 3000; ++i) {
    std::string run(1 + random() % 3, '\0');
    for (char& byte : run) byte = static_cast<char>(random());
    (void)victim.try_change(random() % index_.size(), run, "a run of bytes");
  }
}

}  // namespace
}  // namespace onset
