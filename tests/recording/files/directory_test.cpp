// SPDX-License-Identifier: Apache-2.0
#include "recording/files/directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/recording/recording_files.h"
#include "tests/support/skipped.h"
#include "tests/support/temporary_directory.h"

using namespace millrace;
using namespace millrace::recording;
namespace fs = std::filesystem;
using For = Directory::For;
using Numbers = std::set<std::uint64_t>;

namespace {

mode_t mode_of(const std::string& path) {
  struct stat facts {};
  REQUIRE(::lstat(path.c_str(), &facts) == 0);
  return facts.st_mode & 07777;
}

// The error without the path, which it must begin with.
std::string error_of(const std::string& path, For use) {
  const auto directory = Directory::open(path, use);
  REQUIRE_FALSE(directory.has_value());
  REQUIRE(directory.error().rfind(path + ": ", 0) == 0);
  return directory.error().substr(path.size() + 2);
}

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

std::string read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Opened {
  TemporaryDirectory temporary;
  Directory directory = expect(Directory::open(temporary.path(), For::writing));
  std::string path(const char* name) const { return temporary.path() + "/" + name; }
};

}  // namespace

TEST_CASE("a directory is made for writing only, and only its owner has access") {
  const TemporaryDirectory temporary;
  const std::string path = temporary.path() + "/recordings";
  CHECK(error_of(path, For::reading) == "No such file or directory");
  CHECK(Directory::open(path + "/", For::writing)->path() == path);
  CHECK(mode_of(path) == 0700);
  CHECK(error_of(path + "/a/b", For::writing) == "No such file or directory");
}

TEST_CASE("a directory that other users have access to is refused, and stays as it is") {
  const TemporaryDirectory temporary;
  for (const mode_t mode : {01777, 0755, 0710}) {
    ::chmod(temporary.path().c_str(), mode);
    const std::string error = error_of(temporary.path(), For::writing);
    CHECK_THAT(error, Catch::EndsWith("and no recording file: run chmod 700 '" + temporary.path() +
                                      "', or name another directory"));
    CHECK(mode_of(temporary.path()) == mode);
    CHECK(fs::is_empty(temporary.path()));
  }
  CHECK(error_of(temporary.path(), For::writing).rfind("has mode 0710 ", 0) == 0);
}

TEST_CASE("a private directory with files of others and without recording files is refused") {
  const TemporaryDirectory temporary;
  write(temporary.path() + "/id_rsa", "key");
  CHECK(error_of(temporary.path(), For::writing) ==
        "has no recording file, but another file, 'id_rsa': name another directory");
  fs::remove(temporary.path() + "/id_rsa");
  for (const char* ours : {"lock", "next", "removed", "catalog.sqlite-wal", "0000000001.mcap.new"})
    write(temporary.path() + "/" + ours, "");
  fs::create_directory(temporary.path() + "/lost+found");
  CHECK(Directory::open(temporary.path(), For::writing).has_value());
}

TEST_CASE("the catalog of an earlier version is removed, a link itself") {
  const Opened opened;
  const TemporaryDirectory elsewhere;
  write(elsewhere.path() + "/file", "of another program");
  write(opened.temporary.path() + "/catalog.sqlite", "names of callers");
  fs::create_symlink(elsewhere.path() + "/file", opened.temporary.path() + "/catalog.sqlite-wal");
  CHECK(opened.directory.remove_catalog().empty());
  CHECK(opened.directory.remove_catalog().empty());
  CHECK(fs::is_empty(opened.temporary.path()));
  CHECK(fs::exists(elsewhere.path() + "/file"));
}

TEST_CASE("the indexes of recordings are removed, those of others are not") {
  const Opened opened;
  CHECK(opened.directory.remove_indexes().empty());
  const std::string folder = opened.temporary.path() + "/.millrace";
  write(folder, "no folder");
  CHECK(opened.directory.remove_indexes().empty());
  fs::remove(folder);
  fs::create_directories(folder + "/recordings.folder");
  for (const char* name :
       {"/recordings", "/recordings.asr", "/recordings.asr.abcdef.part", "/index"})
    write(folder + name, "names of callers");
  const auto errors = opened.directory.remove_indexes();
  REQUIRE(errors.size() == 1);
  CHECK_THAT(errors[0], Catch::StartsWith(folder + "/recordings.folder: "));
  CHECK(std::distance(fs::directory_iterator(folder), {}) == 2);
  CHECK(fs::exists(folder + "/index"));
}

TEST_CASE("a directory that has recording files keeps its mode") {
  const Opened opened;
  expect(opened.directory.create(1));
  ::chmod(opened.temporary.path().c_str(), 0755);
  for (const For use : {For::writing, For::changing})
    CHECK(expect(Directory::open(opened.temporary.path(), use)).mode() == 0755);
  CHECK(mode_of(opened.temporary.path()) == 0755);
}

TEST_CASE("files are not changed in a directory without recording files, which is not made") {
  const TemporaryDirectory temporary;
  CHECK(error_of(temporary.path(), For::changing) == "has no recording file");
  CHECK(fs::is_empty(temporary.path()));
  write(temporary.path() + "/catalog.sqlite", "of another program");
  CHECK(error_of(temporary.path(), For::changing) == "has no recording file");
  write(temporary.path() + "/lock", "");
  CHECK(Directory::open(temporary.path(), For::changing).has_value());
  CHECK(error_of(temporary.path() + "/none", For::changing) == "No such file or directory");
}

TEST_CASE("a link, a file, and a directory of another user are refused") {
  const TemporaryDirectory temporary;
  const std::string link = temporary.path() + "/link", file = temporary.path() + "/file";
  fs::create_directory_symlink(temporary.path(), link);
  write(file, "");
  for (const For use : {For::reading, For::writing}) {
    CHECK(error_of(link, use) == "is a link; name the directory itself");
    CHECK(Directory::open(link + "/", use).error() ==
          link + ": is a link; name the directory itself");
    CHECK(error_of(file, use) == "is not a directory");
  }
  if (::geteuid() == 0) {
    REQUIRE(::chown(temporary.path().c_str(), 12345, 0) == 0);
    CHECK(error_of(temporary.path(), For::writing) == "belongs to another user (uid 12345)");
    CHECK(Directory::open(temporary.path(), For::reading).has_value());
  } else {
    CHECK(error_of("/", For::writing) == "belongs to another user (uid 0)");
  }
}

TEST_CASE("a directory that cannot be written is refused for writing") {
  if (::geteuid() == 0) return test::say_skipped("root may write everywhere");
  const TemporaryDirectory temporary;
  ::chmod(temporary.path().c_str(), 0500);
  CHECK(error_of(temporary.path(), For::writing) == "Permission denied");
  CHECK(Directory::open(temporary.path(), For::reading).has_value());
}

TEST_CASE("only one process at a time is the writer") {
  Opened a;
  Directory b = expect(Directory::open(a.temporary.path(), For::writing));
  CHECK_FALSE(b.has_writer());
  CHECK_FALSE(fs::exists(a.path("lock")));
  {
    Directory writer = std::move(a.directory);
    CHECK(writer.lock_for_writing());
    CHECK(mode_of(a.path("lock")) == 0600);
    CHECK(b.has_writer());
    CHECK_FALSE(b.lock_for_writing());
    CHECK(b.has_writer());
    const FileDescriptor maintenance = b.lock_for_maintenance();
    CHECK(maintenance);
  }
  CHECK_FALSE(b.has_writer());
  CHECK(b.lock_for_writing());
}

TEST_CASE("recording files are listed by their numbers, and nothing else is") {
  Opened opened;
  for (const char* name : {"0000000010.mcap", "0000000009.mcap", "12345678901.mcap",
                           "0000000000.mcap", "00000000001.mcap", "1.mcap", "0000000003.mcap.new",
                           "-000000004.mcap", "lock", "0000000005.mcaq", "0000000006"})
    write(opened.path(name), "");
  CHECK(opened.directory.list() == std::vector<FileNumber>{9, 10, 12345678901});
  CHECK(opened.directory.list().size() == 3);
  CHECK(Directory::file_name(17) == "0000000017.mcap");
}

TEST_CASE("a new file has mode 0600, and never replaces another one") {
  Opened opened;
  const FileDescriptor file = expect(opened.directory.create(1));
  CHECK(mode_of(opened.path("0000000001.mcap")) == 0600);
  CHECK(opened.directory.create(1).error() == std::errc::file_exists);
  fs::create_symlink("elsewhere", opened.path("0000000002.mcap"));
  CHECK(opened.directory.create(2).error() == std::errc::file_exists);
  CHECK_FALSE(fs::exists(opened.path("elsewhere")));
}

TEST_CASE("links, pipes and directories are not opened as recording files") {
  Opened opened;
  write(opened.path("target"), "");
  fs::create_symlink("target", opened.path("0000000001.mcap"));
  REQUIRE(::mkfifo(opened.path("0000000002.mcap").c_str(), 0600) == 0);
  fs::create_directory(opened.path("0000000003.mcap"));
  CHECK(opened.directory.open_to_read(1).error() == std::errc::too_many_symbolic_link_levels);
  CHECK(opened.directory.open_to_read(2).error() == std::errc::invalid_argument);
  CHECK(opened.directory.open_to_read(3).error() == std::errc::invalid_argument);
  CHECK(opened.directory.open_to_read(4).error() == std::errc::no_such_file_or_directory);
}

TEST_CASE("a directory that is replaced by a link later has no effect") {
  const TemporaryDirectory temporary;
  const std::string path = temporary.path() + "/recordings",
                    elsewhere = temporary.path() + "/elsewhere";
  const Directory directory = expect(Directory::open(path, For::writing));
  fs::create_directory(elsewhere);
  fs::rename(path, path + ".old");
  fs::create_directory_symlink(elsewhere, path);
  expect(directory.create(1));
  CHECK(fs::is_empty(elsewhere));
  CHECK(fs::exists(path + ".old/0000000001.mcap"));
}

TEST_CASE("a temporary file is renamed over the recording file") {
  Opened opened;
  write(opened.path("0000000001.mcap"), "old");
  write(opened.path("0000000001.mcap.new"), "left by a process that was killed");
  const FileDescriptor reader = expect(opened.directory.open_to_read(1));
  const FileDescriptor file = expect(opened.directory.create_temporary(1));
  REQUIRE(::write(file.get(), "new", 3) == 3);
  expect(opened.directory.replace(1));
  CHECK(read(opened.path("0000000001.mcap")) == "new");
  char text[4] = {};
  CHECK(::read(reader.get(), text, 3) == 3);
  CHECK(std::string(text) == "old");
  expect(opened.directory.remove(1));
  CHECK(opened.directory.list().empty());
}

TEST_CASE("the removed streams are kept in a file") {
  Opened opened;
  CHECK(opened.directory.removed().empty());
  opened.directory.add_removed({17, 3});
  opened.directory.add_removed({18, 3});
  CHECK(opened.directory.removed() == Numbers{3, 17, 18});
  CHECK(read(opened.path("removed")) == "3\n17\n18\n");
  CHECK(mode_of(opened.path("removed")) == 0600);
}

TEST_CASE("a damaged list of removed streams is an error, not a shorter list") {
  Opened opened;
  for (const char* text : {"17", "17\n18", "17\n\n", "x\n", "17 \n", "99999999999999999999\n"}) {
    write(opened.path("removed"), text);
    CHECK_THROWS_AS(opened.directory.removed(), std::system_error);
  }
}

TEST_CASE("the number of the next stream is kept, and damage is an error") {
  Opened opened;
  CHECK(opened.directory.next_stream() == 1);
  expect(opened.directory.keep_next_stream(18));
  expect(opened.directory.keep_next_stream(17'000'000'000));
  CHECK(opened.directory.next_stream() == 17'000'000'000);
  CHECK(read(opened.path("next")) == "00000000017000000000\n");
  CHECK(mode_of(opened.path("next")) == 0600);
  for (const char* text : {"17", "0000000001700000000x\n", "00000000017000000000", "x"}) {
    write(opened.path("next"), text);
    CHECK_THROWS_AS(opened.directory.next_stream(), std::system_error);
  }
  write(opened.path("next"), "");  // after a loss of power
  CHECK(opened.directory.next_stream() == 1);
}

TEST_CASE("the lock for maintenance is not waited for") {
  Opened opened;
  FileDescriptor lock = opened.directory.try_lock_for_maintenance();
  CHECK(static_cast<bool>(lock));
  CHECK_FALSE(static_cast<bool>(opened.directory.try_lock_for_maintenance()));
  lock = FileDescriptor();
  CHECK(static_cast<bool>(opened.directory.try_lock_for_maintenance()));
}

TEST_CASE("the free space is that of the file system") {
  Opened opened;
  CHECK(opened.directory.free_bytes() <= fs::space(opened.temporary.path()).free);
  CHECK(opened.directory.sync().has_value());
}

TEST_CASE("temporary files of killed processes are removed") {
  const Opened opened;
  for (const char* name : {"0000000001.mcap.new", "0000000002.mcap.new", "removed.new"})
    write(opened.path(name), "left");
  write(opened.path("0000000002.mcap"), "");
  write(opened.path("other.new"), "not ours");
  const auto lock = opened.directory.lock_for_maintenance();
  CHECK(opened.directory.remove_temporaries() == 3);
  CHECK(opened.directory.remove_temporaries() == 0);
  CHECK(fs::exists(opened.path("other.new")));
  CHECK(fs::exists(opened.path("0000000002.mcap")));
}

TEST_CASE("the temporary file of the newest file stays while a process may be recovering it") {
  const Opened opened;
  Directory writer = expect(Directory::open(opened.temporary.path(), For::writing));
  REQUIRE(writer.lock_for_writing());
  write(opened.path("0000000002.mcap"), "");
  for (const char* name : {"0000000001.mcap.new", "0000000002.mcap.new"})
    write(opened.path(name), "new");
  CHECK(opened.directory.remove_temporaries() == 1);
  CHECK(fs::exists(opened.path("0000000002.mcap.new")));
}
