// SPDX-License-Identifier: Apache-2.0
#include "base/files/small_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <memory>

#include "base/files/current.h"
#include "tests/support/temporary_directory.h"

using namespace millrace;
using Catch::Contains;
using Catch::StartsWith;

namespace {

struct SmallFile {
  void write(const std::string& text) const { std::ofstream(path) << text; }
  // The error; empty if the file was read.
  std::string error(mode_t mode) const {
    REQUIRE(::chmod(path.c_str(), mode) == 0);
    const auto text = read_secret_file(path, 1024);
    return text ? "" : text.error();
  }

  TemporaryDirectory folder;
  std::string path = folder / "file";
};

}  // namespace

TEST_CASE("a secret is read from a file that only its owner may read") {
  const SmallFile file;
  file.write("secret\n");
  for (const mode_t mode : {0600, 0400, 0700}) CHECK(file.error(mode).empty());
  CHECK(*read_secret_file(file.path, 1024) == "secret\n");
}

TEST_CASE("a secret in a file that others may read or write is refused with its mode") {
  const SmallFile file;
  file.write("secret\n");
  for (const mode_t mode : {0644, 0604, 0602, 0601, 0660, 0620, 0610, 0650, 0641}) {
    CAPTURE(mode);
    CHECK_THAT(file.error(mode), StartsWith("has mode 0") && Contains("must have 0600"));
  }
  CHECK_THAT(file.error(0644), StartsWith("has mode 0644, "));
  CHECK(*read_small_file(file.path, 1024) == "secret\n");
}

TEST_CASE("the group may read a secret that belongs to root") {
  const SmallFile file;
  file.write("secret\n");
  if (::geteuid() == 0) {
    CHECK(file.error(0640).empty());
    REQUIRE(::chown(file.path.c_str(), 1, 1) == 0);
  }
  CHECK_THAT(file.error(0640), StartsWith("has mode 0640, "));
  CHECK(file.error(0600).empty());
}

TEST_CASE("only a regular file up to the limit is read") {
  const SmallFile file;
  CHECK(read_small_file(file.path, 1024).error() == "cannot be read: No such file or directory");
  REQUIRE(::mkfifo(file.path.c_str(), 0600) == 0);
  CHECK(read_small_file(file.path, 1024).error() == "is not a regular file");
  REQUIRE(::unlink(file.path.c_str()) == 0);
  CHECK(read_small_file(file.folder.path(), 1024).error() == "is not a regular file");
  file.write(std::string(1024, 'a'));
  CHECK(read_small_file(file.path, 1024)->size() == 1024);
  file.write(std::string(1025, 'a'));
  CHECK(read_small_file(file.path, 1024).error() == "is larger than 1 KiB");
}

TEST_CASE("content that was replaced stays with those that have it") {
  Current<int> current(std::make_shared<const int>(1));
  const auto before = current.get();
  current.replace(std::make_shared<const int>(2));
  CHECK(*before == 1);
  CHECK(*current.get() == 2);
}
