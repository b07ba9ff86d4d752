// SPDX-License-Identifier: Apache-2.0
#include "recording/files/retention.h"

#include <catch2/catch.hpp>
#include <chrono>

#include "tests/recording/files/planned_file.h"

using namespace millrace;
using namespace millrace::recording;
using namespace std::chrono_literals;
using SegmentNumbers = std::vector<FileNumber>;

namespace {

const std::vector<StoredFile> files{{.number = 3, .bytes = 100, .age = 30h},
                                    {.number = 4, .bytes = 200, .age = 20h},
                                    {.number = 7, .bytes = 50, .age = 10h},
                                    {.number = 8, .bytes = 10, .age = 1h}};

}  // namespace

TEST_CASE("the oldest files are deleted until the others fit") {
  CHECK(files_to_delete(files, {.keep = 360, .keep_for = 100h}).empty());
  CHECK(files_to_delete(files, {.keep = 359, .keep_for = 100h}) == SegmentNumbers{3});
  CHECK(files_to_delete(files, {.keep = 259, .keep_for = 100h}) == SegmentNumbers{3, 4});
}

TEST_CASE("files are deleted by their age") {
  CHECK(files_to_delete(files, {.keep = 1000, .keep_for = 30h}).empty());
  CHECK(files_to_delete(files, {.keep = 1000, .keep_for = 25h}) == SegmentNumbers{3});
  CHECK(files_to_delete(files, {.keep = 260, .keep_for = 15h}) == SegmentNumbers{3, 4});
}

TEST_CASE("the newest file is never deleted, and an old file behind a kept one stays") {
  CHECK(files_to_delete(files, {.keep = 0, .keep_for = 0h}) == SegmentNumbers{3, 4, 7});
  CHECK(files_to_delete({}, {.keep = 0, .keep_for = 0h}).empty());
  std::vector<StoredFile> later = files;
  later[2].age = 1000h;
  CHECK(files_to_delete(later, {.keep = 1000, .keep_for = 40h}).empty());
}

TEST_CASE("retention deletes files of a directory, and a reader keeps its open file") {
  const PlannedFile planned(3, 3, true);
  SegmentFile reader = planned.open();
  auto newest = expect(SegmentWriter::begin(expect(planned.directory.create(2)), head_of(2)));
  const Deleted kept = apply({.keep = 1 << 20, .keep_for = 1h}, planned.directory, 0s);
  CHECK(kept.files.empty());

  const Deleted deleted = apply({.keep = 0, .keep_for = 1h}, planned.directory, 0s);
  CHECK(deleted.files == SegmentNumbers{1});
  CHECK(deleted.bytes == planned.bytes.size());
  CHECK(deleted.errors.empty());
  CHECK(planned.directory.list() == SegmentNumbers{2});
  CHECK(read_all(reader) == planned.all);
}
