// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "tests/support/temporary_directory.h"
#include "transport/access/resume_keys.h"

using namespace millrace;
using Catch::Contains;
using Catch::StartsWith;

namespace {

const std::string file_key(64, 'a');

struct KeyFile {
  // The error; empty if the file was read.
  std::string error(mode_t mode) const {
    REQUIRE(::chmod(path.c_str(), mode) == 0);
    return error();
  }
  std::string error() const {
    const auto keys = ResumeKeys::read(path);
    return keys ? "" : keys.error();
  }

  TemporaryDirectory folder;
  std::string path = folder / "key";
};

}  // namespace

TEST_CASE("a file of keys that only its owner may read is read") {
  const KeyFile file;
  std::ofstream(file.path) << file_key << '\n';
  for (const mode_t mode : {0600, 0400, 0700}) CHECK(file.error(mode).empty());
  CHECK(*ResumeKeys::read(file.path) == *ResumeKeys::parse(file_key));
}

TEST_CASE("a file of keys that others may read or write is refused with its mode") {
  const KeyFile file;
  std::ofstream(file.path) << file_key << '\n';
  for (const mode_t mode : {0644, 0604, 0602, 0601, 0660, 0620, 0610, 0650, 0641}) {
    CAPTURE(mode);
    CHECK_THAT(file.error(mode), StartsWith("has mode 0") && Contains("must have 0600"));
  }
  CHECK_THAT(file.error(0644), StartsWith("has mode 0644, "));
}

TEST_CASE("the group may read a file of keys that belongs to root") {
  const KeyFile file;
  std::ofstream(file.path) << file_key << '\n';
  if (::geteuid() == 0) {
    CHECK(file.error(0640).empty());
    REQUIRE(::chown(file.path.c_str(), 1, 1) == 0);
  }
  CHECK_THAT(file.error(0640), StartsWith("has mode 0640, "));
  CHECK(file.error(0600).empty());
}

TEST_CASE("keys are read from a regular file of at most 64 KiB") {
  const KeyFile file;
  CHECK(file.error() == "cannot be read: No such file or directory");
  REQUIRE(::mkfifo(file.path.c_str(), 0600) == 0);
  CHECK(file.error() == "is not a regular file");
  REQUIRE(::unlink(file.path.c_str()) == 0);
  std::ofstream(file.path) << file_key << "\n#" << std::string((64 << 10) - 66, ' ');
  CHECK(file.error(0600).empty());
  std::ofstream(file.path, std::ios::app) << ' ';
  CHECK(file.error() == "is larger than 64 KiB");
  std::ofstream(file.path) << "secret";
  CHECK(file.error() == "line 1: must be a key of 64 hexadecimal digits");
}
