// SPDX-License-Identifier: Apache-2.0
#include "recording/reader/catalog.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "recording/reader/database.h"
#include "tests/recording/reader/recorded_directory.h"
#include "tests/support/temporary_directory.h"

namespace millrace::recording {
namespace {

// Two sealed files, and one that is being written.
class Recorded : public RecordedDirectory {
 public:
  Recorded() {
    for (const FileNumber file : {1, 2, 3}) {
      FileWriter writer = begin(file);
      across_.add(writer, 10, file == 3);
      TestStream(10 + file).add(writer, file, true);
      if (file < 3)
        seal(writer);
      else
        commit(writer);
    }
  }

 private:
  TestStream across_{1};
};

// All that is known of the streams, as text.
std::string content(Recordings& recordings) {
  std::ostringstream text;
  for (const RecordedStream& stream : recordings.streams()) {
    text << stream.meta.name << ' ' << stream.frames << ' ' << stream.end << ' '
         << stream.first_file << '-' << stream.last_file << (stream.whole ? " whole" : "")
         << (stream.open ? " open" : "");
    for (const auto& [key, value] : to_metadata(stream.meta)) text << ' ' << key << '=' << value;
    text << '\n';
  }
  return text.str();
}

std::string content(const RecordedDirectory& recorded) { return content(*recorded.read()); }

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

struct stat status_of(const std::string& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status;
}

// The files that the catalog has on the disk.
std::vector<CatalogFile> stored_files(const RecordedDirectory& recorded) {
  return Catalog::open(recorded.path(), status_of(recorded.path()).st_ino).files();
}

TEST_CASE("the catalog has the sealed files, and only this user can read it") {
  Recorded recorded;
  const std::string expected = content(recorded);
  CHECK_THAT(expected, Catch::Contains("call-1 30 30 1-3 whole"));
  CHECK(stored_files(recorded).size() == 2);
  CHECK((status_of(recorded.catalog()).st_mode & 0777) == 0600);
  CHECK(content(recorded) == expected);
}

TEST_CASE("a catalog is read without the recording files") {
  Recorded recorded;
  content(recorded);
  const auto inode = status_of(recorded.path()).st_ino;
  Catalog catalog = Catalog::open(recorded.path(), inode);
  const auto parts = catalog.of(1);
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].meta == meta_of(1));
  CHECK(parts[1].file == 2);
  CHECK(parts[1].part.begin == 10);
}

TEST_CASE("a catalog that is missing is made, with the same content") {
  Recorded recorded;
  const std::string expected = content(recorded);
  std::filesystem::remove(recorded.catalog());
  CHECK(content(recorded) == expected);
  CHECK(stored_files(recorded).size() == 2);
}

TEST_CASE("a catalog that is older gets the files that it does not have") {
  Recorded recorded;
  content(recorded);
  const std::string older = bytes_of(recorded.catalog());
  FileWriter writer = recorded.begin(4);
  TestStream(40).add(writer, 1, true);
  seal(writer);
  expect(recorded.directory.remove(1));
  const std::string expected = content(recorded);
  CHECK_THAT(expected, Catch::Contains("call-40") && !Catch::Contains("call-11"));
  write(recorded.catalog(), older);
  CHECK(content(recorded) == expected);
  std::filesystem::remove(recorded.catalog());
  CHECK(content(recorded) == expected);
}

TEST_CASE("a file that was replaced is read again") {
  Recorded recorded;
  content(recorded);
  FileWriter writer =
      expect(FileWriter::begin(expect(recorded.directory.create_temporary(2)), head_of(2)));
  TestStream(50).add(writer, 1, true);
  seal(writer);
  expect(recorded.directory.replace(2));
  const std::string replaced = content(recorded);
  CHECK_THAT(replaced, Catch::Contains("call-50") && !Catch::Contains("call-12"));
  std::filesystem::remove(recorded.catalog());
  CHECK(content(recorded) == replaced);
}

TEST_CASE("a catalog with any damaged byte is made again, with the same content") {
  Recorded recorded;
  const std::string expected = content(recorded);
  const std::string good = bytes_of(recorded.catalog());
  for (std::size_t at = 0; at < good.size(); at += at < 200 ? 1 : 97) {
    std::string damaged = good;
    damaged[at] = static_cast<char>(~damaged[at]);
    write(recorded.catalog(), damaged);
    CAPTURE(at);
    CHECK(content(recorded) == expected);
  }
}

TEST_CASE("a catalog that is cut off anywhere is made again, with the same content") {
  Recorded recorded;
  const std::string expected = content(recorded);
  const std::string good = bytes_of(recorded.catalog());
  for (std::size_t size = 0; size < good.size(); size += 511) {
    write(recorded.catalog(), good.substr(0, size));
    CAPTURE(size);
    CHECK(content(recorded) == expected);
  }
  CHECK(stored_files(recorded).size() == 2);
}

TEST_CASE("a catalog of another directory is made again") {
  Recorded recorded, other;
  FileWriter writer = other.begin(4);
  TestStream(40).add(writer, 1, true);
  seal(writer);
  const std::string expected = content(recorded);
  content(other);
  std::filesystem::copy_file(other.catalog(), recorded.catalog(),
                             std::filesystem::copy_options::overwrite_existing);
  CHECK(content(recorded) == expected);
}

TEST_CASE("a catalog of another version is made again") {
  Recorded recorded;
  const std::string expected = content(recorded);
  {
    Database database = Database::open(recorded.catalog(), Database::Access::write);
    database.lock();
    database.commit(99);
  }
  CHECK(content(recorded) == expected);
  CHECK(stored_files(recorded).size() == 2);
}

TEST_CASE("a link in place of the catalog is not followed") {
  Recorded recorded;
  TemporaryDirectory elsewhere{memory_folder()};
  const std::string expected = content(recorded);
  std::filesystem::rename(recorded.catalog(), elsewhere / "file");
  const std::string before = bytes_of(elsewhere / "file");
  std::filesystem::create_symlink(elsewhere / "file", recorded.catalog());
  expect(recorded.directory.remove(1));
  CHECK(content(recorded) != expected);
  CHECK(bytes_of(elsewhere / "file") == before);
}

// Root may write any directory, so root reads it as another user.
TEST_CASE("if the directory cannot be written, the catalog is in memory") {
  Recorded recorded;
  const std::string expected = content(recorded);
  std::filesystem::remove(recorded.catalog());
  for (const FileNumber file : {1, 2, 3}) REQUIRE(::chmod(recorded.file(file).c_str(), 0444) == 0);
  REQUIRE(::chmod(recorded.path().c_str(), 0555) == 0);
  const bool root = ::geteuid() == 0;
  if (root) REQUIRE(::seteuid(65534) == 0);
  const std::string in_memory = content(recorded);
  if (root) REQUIRE(::seteuid(0) == 0);
  CHECK(in_memory == expected);
  CHECK_FALSE(std::filesystem::exists(recorded.catalog()));
  REQUIRE(::chmod(recorded.path().c_str(), 0700) == 0);
}

TEST_CASE("while another process changes the catalog, one in memory is used") {
  Recorded recorded;
  const std::string expected = content(recorded);
  Database database = Database::open(recorded.catalog(), Database::Access::write);
  database.lock();
  CHECK(content(recorded) == expected);
  database.roll_back();
  CHECK(stored_files(recorded).size() == 2);
}

TEST_CASE("readers with one catalog do not see each other's changes") {
  Recorded recorded;
  const auto first = recorded.read();
  const std::string expected = content(*first);
  FileWriter writer = recorded.begin(4);
  TestStream(40).add(writer, 1, true);
  seal(writer);
  const auto second = recorded.read();
  CHECK(second->find(40));
  CHECK_FALSE(first->find(40));
  CHECK(content(*first) == expected);
  CHECK(first->refresh());
  CHECK(first->find(40));
}

}  // namespace
}  // namespace millrace::recording
