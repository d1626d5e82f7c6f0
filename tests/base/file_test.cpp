#include "onset/base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "support/support.h"

namespace onset {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using testing::TemporaryFolder;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(MappedFile, ShowsTheBytesOfTheFile) {
  const TemporaryFolder folder;
  const auto path = folder.write("x", "some bytes");
  const MappedFile file = MappedFile::open(path);
  EXPECT_EQ(text_of(file.bytes()), "some bytes");
  EXPECT_EQ(file.path(), path);
  EXPECT_TRUE(MappedFile::open(folder.write("empty", "")).bytes().empty());
}

TEST(MappedFile, CopiesShareTheMap) {
  const TemporaryFolder folder;
  MappedFile copy;
  {
    const MappedFile file = MappedFile::open(folder.write("x", "some bytes"));
    copy = file;
    EXPECT_EQ(copy.bytes().data(), file.bytes().data());
  }
  EXPECT_EQ(text_of(copy.bytes()), "some bytes");
}

TEST(MappedFile, HintsTakeAnyRangeAndKeepTheBytes) {
  const TemporaryFolder folder;
  const std::string content(100'000, 'x');
  const MappedFile file = MappedFile::open(folder.write("x", content));
  for (const std::size_t offset : {0UL, 1UL, 5000UL, 99'999UL, 100'000UL, 200'000UL, SIZE_MAX}) {
    for (const std::size_t length : {0UL, 1UL, 8192UL, 100'000UL, SIZE_MAX}) {
      file.will_need(offset, length);
      file.drop(offset, length);
      file.drop(offset, length, /*evict=*/true);
    }
  }
  EXPECT_EQ(text_of(file.bytes()), content);
  MappedFile::open(folder.write("empty", "")).will_need(0, 10);
}

TEST(MappedFile, RefusesWhatIsNoFile) {
  const TemporaryFolder folder;
  const auto says = [](const fs::path& path) {
    return error_of([&] { (void)MappedFile::open(path); });
  };
  EXPECT_EQ(says(folder.path()), folder.path().string() + ": is not a regular file");
  EXPECT_EQ(says("/dev/zero"), "/dev/zero: is not a regular file");
  EXPECT_EQ(says(folder.path() / "absent"),
            (folder.path() / "absent").string() + ": cannot open: No such file or directory");
}

// Opening a pipe that nobody writes to must not wait for one who does.
TEST(MappedFile, RefusesAPipeAtOnce) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { (void)MappedFile::open(path); }),
            path.string() + ": is not a regular file");
  EXPECT_EQ(error_of([&] { (void)read_file(path); }), path.string() + ": is not a regular file");
}

TEST(ReadFile, ReadsWholeFilesWithinTheBound) {
  const TemporaryFolder folder;
  const std::string content("a\0b\n", 4);
  const auto path = folder.write("x", content);
  EXPECT_EQ(read_file(path), content);
  EXPECT_EQ(read_file(path, 4), content);
  EXPECT_EQ(error_of([&] { (void)read_file(path, 3); }),
            path.string() + ": 4 bytes is more than the 3 expected of such a file");
}

TEST(AtomicFile, AppearsAtCommit) {
  const TemporaryFolder folder;
  const auto path = folder.write("x", "before");
  {
    AtomicFile file(path);
    file.write("after");
    EXPECT_EQ(file.size(), 5U);
    EXPECT_EQ(read_file(path), "before");
    file.commit();
  }
  EXPECT_EQ(read_file(path), "after");
  EXPECT_EQ(files_in(folder.path()), 1U);
}

TEST(AtomicFile, LeavesNothingWithoutCommit) {
  const TemporaryFolder folder;
  {
    AtomicFile file(folder.path() / "x");
    file.write("lost");
  }
  EXPECT_EQ(files_in(folder.path()), 0U);
}

TEST(AtomicFile, OverwritesAndInserts) {
  const TemporaryFolder folder;
  AtomicFile file(folder.path() / "x");
  file.write("0123456789");
  file.write_at(2, std::as_bytes(std::span("ab", 2)));
  file.write("X");
  file.insert_front(3);
  EXPECT_EQ(file.size(), 14U);
  file.write_at(0, std::as_bytes(std::span("new", 3)));
  file.write("Y");
  file.commit();
  EXPECT_EQ(read_file(folder.path() / "x"), "new01ab456789XY");
}

// More than one piece moves at a time, by less than a piece and by more.
TEST(AtomicFile, InsertMovesLargeFiles) {
  const TemporaryFolder folder;
  std::string content;
  content.resize(9'500'000);
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 31 >> 8U);
  for (const std::uint64_t count : {std::uint64_t{1}, std::uint64_t{5'000'000}}) {
    AtomicFile file(folder.path() / "x");
    file.write(content);
    file.insert_front(count);
    file.commit();
    EXPECT_TRUE(read_file(folder.path() / "x").substr(count) == content) << count;
  }
}

TEST(AtomicFile, HasThePermissionsThatTheUmaskLeaves) {
  const TemporaryFolder folder;
  const mode_t before = ::umask(027);
  write_file_atomically(folder.path() / "x", "");
  ::umask(before);
  EXPECT_EQ(fs::status(folder.path() / "x").permissions(),
            fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
}

TEST(AtomicFile, WritesThroughALink) {
  const TemporaryFolder folder;
  const auto target = folder.write("target", "before");
  fs::create_symlink("target", folder.path() / "link");
  write_file_atomically(folder.path() / "link", "after");
  EXPECT_TRUE(fs::is_symlink(folder.path() / "link"));
  EXPECT_EQ(read_file(target), "after");
}

TEST(AtomicFile, SaysWhyNothingCanBeWritten) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { AtomicFile file(folder.path()); }),
            folder.path().string() + ": is a folder\nname a file");
  const auto path = folder.path() / "absent" / "x";
  EXPECT_EQ(error_of([&] { AtomicFile file(path); }),
            path.string() +
                ": cannot write: No such file or directory\n"
                "name a file in a folder that exists and can be written");
}

TEST(AtomicFile, ADanglingLinkKeepsPointingWhereItDid) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("target", folder.path() / "link");
  write_file_atomically(folder.path() / "link", "content");
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path() / "link"));
  EXPECT_EQ(read_file(folder.path() / "target"), "content");
}

TEST(AtomicFile, AReplacedFileKeepsItsPermissions) {
  const TemporaryFolder folder;
  const auto path = folder.write("x", "old");
  std::filesystem::permissions(path, std::filesystem::perms::owner_read);
  write_file_atomically(path, "new");
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms::owner_read);
  EXPECT_EQ(read_file(path), "new");
}

TEST(AtomicFile, NamesMayBeAsLongAsTheSystemAllows) {
  const TemporaryFolder folder;
  write_file_atomically(folder.path() / std::string(255, 'x'), "content");
  EXPECT_EQ(files_in(folder.path()), 1U);
  const std::string error =
      error_of([&] { AtomicFile file(folder.path() / std::string(256, 'x')); });
  EXPECT_NE(error.find("too long"), std::string::npos) << error;
}

TEST(AtomicFile, PipesAndDevicesAreNotReplaced) {
  EXPECT_NE(error_of([] { AtomicFile file("/dev/null"); }).find("no regular file"),
            std::string::npos);
}

TEST(AtomicFile, TwoWritersOfOneNameDoNotMix) {
  const TemporaryFolder folder;
  AtomicFile first(folder.path() / "x");
  AtomicFile second(folder.path() / "x");
  first.write("first");
  second.write("second");
  first.commit();
  second.commit();
  EXPECT_EQ(read_file(folder.path() / "x"), "second");
  EXPECT_EQ(files_in(folder.path()), 1U);
}

}  // namespace
}  // namespace onset
