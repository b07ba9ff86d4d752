// SPDX-License-Identifier: Apache-2.0
#include "recording/files/retention.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <optional>
#include <utility>

#include "recording/files/rewrite.h"
#include "tests/recording/files/planned_file.h"

using namespace millrace;
using namespace millrace::recording;
using namespace std::chrono_literals;
using SegmentNumbers = std::vector<FileNumber>;

namespace {

constexpr Duration now = 1000h;
const std::vector<StoredFile> files{{.number = 3, .bytes = 100, .written = now - 30h},
                                    {.number = 4, .bytes = 200, .written = now - 20h},
                                    {.number = 7, .bytes = 50, .written = now - 10h},
                                    {.number = 8, .bytes = 10, .written = now - 1h}};

SegmentNumbers chosen(const std::vector<StoredFile>& stored, const Retention& retention) {
  return files_to_delete(stored, retention, now).files;
}

// Deletes from files of 100 bytes, given the hours since the last write of each.
SegmentNumbers older_than_24h(const std::vector<int>& hours_ago) {
  std::vector<StoredFile> stored;
  for (const int hours : hours_ago)
    stored.push_back({.number = stored.size() + 1, .bytes = 100, .written = now - hours * 1h});
  return chosen(stored, {.keep = 1000, .keep_for = 24h});
}

}  // namespace

TEST_CASE("the oldest files are deleted until the others fit") {
  CHECK(chosen(files, {.keep = 360, .keep_for = 100h}).empty());
  CHECK(chosen(files, {.keep = 359, .keep_for = 100h}) == SegmentNumbers{3});
  CHECK(chosen(files, {.keep = 259, .keep_for = 100h}) == SegmentNumbers{3, 4});
}

TEST_CASE("files are deleted by their age") {
  CHECK(chosen(files, {.keep = 1000, .keep_for = 30h}).empty());
  CHECK(chosen(files, {.keep = 1000, .keep_for = 25h}) == SegmentNumbers{3});
  CHECK(chosen(files, {.keep = 260, .keep_for = 15h}) == SegmentNumbers{3, 4});
  CHECK(files_to_delete(files, {.keep = 1000, .keep_for = 25h}, now).by_age == 1);
  CHECK(files_to_delete(files, {.keep = 60, .keep_for = 25h}, now).by_age == 1);
}

TEST_CASE("the newest file is deleted only by its age, and if no process writes it") {
  CHECK(chosen(files, {.keep = 0, .keep_for = 0h}) == SegmentNumbers{3, 4, 7});
  CHECK(chosen({}, {.keep = 0, .keep_for = 0h}).empty());
  CHECK(chosen(files, {.keep = 0, .keep_for = 2h, .newest = true}) == SegmentNumbers{3, 4, 7});
  CHECK(chosen(files, {.keep = 0, .keep_for = 0h, .newest = true}) == SegmentNumbers{3, 4, 7, 8});
}

TEST_CASE("a file whose time does not fit between those of its neighbours stops no deletion") {
  CHECK(older_than_24h({-9000, 40, 40, 40, 1}) == SegmentNumbers{1, 2, 3, 4});
  CHECK(older_than_24h({40, -9000, 30, 2, 1}) == SegmentNumbers{1, 2, 3});
  CHECK(older_than_24h({40, 30, -9000, 1}) == SegmentNumbers{1, 2});
  CHECK(older_than_24h({-9000, -9000, -9000, 40, 30}) == SegmentNumbers{1, 2, 3, 4});
  CHECK(older_than_24h({40, 30, -9000, -9000}) == SegmentNumbers{1, 2});
  CHECK(older_than_24h({-9000, -9000}).empty());
}

TEST_CASE("a file that seems to be much older than those before it deletes none of them") {
  CHECK(older_than_24h({5, 4, 900, 3, 1}).empty());
  CHECK(older_than_24h({40, 4, 900, 3, 1}) == SegmentNumbers{1});
  CHECK(older_than_24h({5, 4, 3, 900}).empty());
}

TEST_CASE("a wall clock that fits to the last change of the files is believed at once") {
  ClockTrust clock(now - 59min);
  CHECK(clock.believes(now, Time{} + 5s));
  CHECK(clock.believes(now + 1h, Time{} + 5s + 1h));
}

TEST_CASE("a wall clock that is far from the last change is believed after an hour") {
  for (const std::optional<Duration> changed : {std::optional<Duration>(now - 400 * 24h), {}}) {
    ClockTrust clock(changed);
    CHECK_FALSE(clock.believes(now, Time{}));
    CHECK_FALSE(clock.believes(now + 59min, Time{} + 59min));
    CHECK(clock.believes(now + 1h, Time{} + 1h));
  }
}

TEST_CASE("a wall clock that was set is believed after an hour") {
  for (const Duration by : {Duration(400 * 24h), Duration(-2min)}) {
    ClockTrust clock(now);
    CHECK(clock.believes(now, Time{}));
    CHECK_FALSE(clock.believes(now + by + 1min, Time{} + 1min));
    CHECK_FALSE(clock.believes(now + by + 60min, Time{} + 60min));
    CHECK(clock.believes(now + by + 61min, Time{} + 61min));
  }
}

TEST_CASE("a copied file with an old time shows the present time of the wall clock") {
  const PlannedFile planned(3, 3, true);
  const std::string file = planned.directory.path() + "/" + Directory::file_name(1);
  struct stat facts {};
  REQUIRE(::stat(file.c_str(), &facts) == 0);
  const Duration wall = std::chrono::seconds(facts.st_mtim.tv_sec);
  std::filesystem::last_write_time(file, std::filesystem::last_write_time(file) - 9000h);
  const auto changed = latest_change(planned.directory.path(), wall + 1h);
  REQUIRE(changed);
  CHECK(*changed > wall - 1h);
  CHECK_FALSE(latest_change(planned.directory.path() + "/none", wall).has_value());
}

TEST_CASE("a rewrite does not bring back a file that is deleted meanwhile") {
  const PlannedFile planned(3, 3, true);
  RecordingFile file = planned.open();
  bool deleted = false;
  const auto rewritten = rewrite(planned.directory, file, [&](std::uint64_t) {
    if (!std::exchange(deleted, true)) expect(planned.directory.remove(1));
    return true;
  });
  CHECK_FALSE(rewritten.has_value());
  CHECK(std::filesystem::is_empty(planned.directory.path()));
  const auto later = rewrite(planned.directory, file, [](std::uint64_t) { return true; });
  CHECK_FALSE(later.has_value());
  CHECK(std::filesystem::is_empty(planned.directory.path()));
}

TEST_CASE("retention deletes files of a directory, and a reader keeps its open file") {
  const PlannedFile planned(3, 3, true);
  RecordingFile reader = planned.open();
  auto newest = expect(FileWriter::begin(expect(planned.directory.create(2)), head_of(2)));
  const Deleted kept = apply({.keep = 1 << 20, .keep_for = 1h}, planned.directory, 0s);
  CHECK(kept.files.empty());

  const Deleted deleted = apply({.keep = 0, .keep_for = 1h}, planned.directory, 0s);
  CHECK(deleted.files == SegmentNumbers{1});
  CHECK(deleted.bytes == planned.bytes.size());
  CHECK(deleted.errors.empty());
  CHECK(planned.directory.list() == SegmentNumbers{2});
  CHECK(read_all(reader) == planned.all);
}
