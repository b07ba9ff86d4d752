// SPDX-License-Identifier: Apache-2.0
// What the recorder does when the disk is full or fails (docs/recording_format.md).
#include "tests/support/failing_disk.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <string>
#include <vector>

#include "recording/files/recovery.h"
#include "recording/reader/recordings.h"
#include "tests/recording/writer/recorder_under_test.h"

using namespace millrace;
using namespace millrace::recording;
using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

namespace {

// A stream of which 10 frames are recorded in each commit.
struct Recording : RecorderUnderTest {
  Recording() {
    settings.min_free = 10 << 20;
    start();
  }

  void record() {
    add_frames(stream, 1 + frames, 10, now);
    frames += 10;
    commit();
  }
  // The slices of the stream, each with its number, first event, and lost events before it.
  Lines slices() const {
    Lines lines;
    const auto all = read();
    for (const KeptSlice& slice : all.at(1)) {
      REQUIRE(slice.frames == frames_from(1 + slice.begin, slice.frames.size() / 2));
      std::string line = std::to_string(slice.number) + ": " + std::to_string(slice.first_event);
      if (slice.lost) line += ", lost from " + std::to_string(slice.lost->first_event);
      if (slice.closing) line += ", closed";
      lines.push_back(line);
    }
    return lines;
  }

  test::FailingDisk disk;
  StreamPen stream = open(1);
  std::uint64_t frames = 0;
};

}  // namespace

TEST_CASE_METHOD(Recording, "after a failed write the next file begins at once") {
  record();
  disk.write = EIO;
  record();
  disk.write = 0;
  record();
  CHECK(slices() == Lines{"0: 0", "2: 3, lost from 2"});
  CHECK(notices.all == Lines{"unsealed 1"});
  CHECK_FALSE(is_sealed(1));
  CHECK(stats.errors[FileOperation::write].value() == 1);
  CHECK(stats.dropped[DropReason::io_error].value() == 1);
  CHECK(stats.files[FileEvent::quarantined].value() == 1);
}

TEST_CASE_METHOD(Recording, "a failed sync is not repeated, and its slices count as lost") {
  record();
  disk.sync = EIO;
  record();
  const int syncs = disk.syncs;
  disk.sync = 0;
  recorder->work(now);
  CHECK(disk.syncs == syncs);
  record();
  // The failed commit is on this disk after all. A reader has its events already.
  CHECK(slices() == Lines{"0: 0", "1: 2", "2: 3, lost from 2"});
  CHECK(notices.all == Lines{"unsealed 1"});
  CHECK(stats.errors[FileOperation::fsync].value() == 1);
}

TEST_CASE_METHOD(Recording, "what a failed sync has written is whole once its file is repaired") {
  record();
  stream.event({.kind = Event::Kind::end}, now, {});
  stream.close({.complete = true});
  REQUIRE(stream.finish());
  disk.sync = EIO;
  commit();
  disk.sync = 0;
  recorder->finish(now);
  CHECK(slices() == Lines{"0: 0", "1: 2, closed", "2: 3, lost from 2, closed"});
  expect(recover(expect(Directory::open(directory.path(), Directory::For::writing)), 1));
  CHECK(expect(Recordings::open(directory.path()))->find(1)->whole);
}

TEST_CASE_METHOD(Recording, "interrupted and short writes are continued") {
  disk.interrupt = 9;
  record();
  record();
  CHECK(disk.writes > 4);
  CHECK(slices() == Lines{"0: 0", "1: 2"});
  CHECK(notices.all.empty());
}

TEST_CASE_METHOD(Recording, "files that fail one after the other suspend recording") {
  disk.sync = EIO;
  for (int i = 0; i < 50; ++i) record();
  CHECK(stats.files[FileEvent::quarantined].value() < 6);
  CHECK(stats.suspended.value() == 1);
  disk.sync = 0;
  pass(10s);
  record();
  CHECK(stats.suspended.value() == 0);
  CHECK(notices.all.back() == "resumed");
  CHECK(read()[1].back().lost->reason == DropReason::io_error);
}

TEST_CASE_METHOD(Recording,
                 "a directory that cannot be listed when a number is taken costs slices") {
  record();
  {
    const auto reading = expect(Directory::open(directory.path(), Directory::For::reading));
    (void)expect(reading.create(2));
  }
  disk.write = EIO;
  disk.list = EIO;
  record();
  disk.write = 0;
  record();
  CHECK(stats.suspended.value() == 1);
  disk.list = 0;
  pass(10s);
  record();
  CHECK(notices.all.back() == "resumed");
  CHECK(files() == std::vector<FileNumber>{1, 2, 3});
}

TEST_CASE_METHOD(Recording, "a full disk suspends recording, which resumes by itself") {
  record();
  disk.write = ENOSPC;
  disk.free_bytes = 0;
  for (int i = 0; i < 20; ++i) record();
  CHECK(stats.suspended.value() == 1);
  disk.write = 0;
  disk.free_bytes.reset();
  pass(2s);
  record();
  CHECK(slices() == Lines{"0: 0", "21: 22, lost from 2"});
  CHECK(stats.suspended.value() == 0);
  CHECK(is_sealed(1));
  const Lines seen{notices.all.front(), notices.all.back()};
  CHECK(seen == Lines{"suspended", "resumed"});
}

TEST_CASE_METHOD(Recording,
                 "the file that filled the disk is sealed, however long the disk was full") {
  record();
  disk.write = ENOSPC;  // although space is free: a quota
  record();
  for (int i = 0; i < 3; ++i) pass(100s);  // attempts to resume, which fail
  disk.write = 0;
  pass(100s);
  record();
  CHECK(is_sealed(1));
  CHECK(notices.all ==
        Lines{"suspended", "dropped 1", "recovered 1, streams 1", "sealed 1", "resumed"});
  CHECK(slices() == Lines{"0: 0", "2: 3, lost from 2"});
}

TEST_CASE_METHOD(Recording,
                 "a disk that is full at the start suspends recording until it has space") {
  record();
  recorder.reset();
  disk.write = ENOSPC;
  disk.reserve = ENOSPC;
  notices.all.clear();
  start();
  CHECK(notices.all == Lines{"suspended"});
  CHECK(stats.suspended.value() == 1);
  CHECK(recorder->series().next_stream() == 2);
  StreamPen other = open(2);
  add_frames(other, 1, 10, now);
  commit();
  disk.write = 0;
  disk.reserve = 0;
  for (int i = 0; i < 3; ++i) pass(10s);
  add_frames(other, 11, 10, now);
  commit();
  CHECK(notices.all.back() == "resumed");
  CHECK(is_sealed(1));
  CHECK(read().at(2).back().lost->reason == DropReason::disk_full);
}

TEST_CASE_METHOD(Recording, "a directory that cannot be listed at the start suspends recording") {
  record();
  recorder.reset();
  disk.list = EIO;
  start();
  CHECK(stats.suspended.value() == 1);
  CHECK(recorder->series().next_stream() == 0);  // no stream is recorded yet
  disk.list = 0;
  pass(10s);
  CHECK(stats.suspended.value() == 0);
  CHECK(recorder->series().next_stream() == 2);
  CHECK(files() == std::vector<FileNumber>{1, 2});
}

TEST_CASE_METHOD(Recording, "numbers of streams that cannot be read at the start are not reused") {
  record();
  recorder.reset();
  std::filesystem::remove(directory / Directory::file_name(1));
  disk.unreadable = {0, 1 << 20};
  start();
  CHECK(stats.suspended.value() == 1);
  CHECK(recorder->series().next_stream() == 0);
  disk.unreadable.reset();
  pass(10s);
  CHECK(stats.suspended.value() == 0);
  CHECK(recorder->series().next_stream() == 2);
}

TEST_CASE_METHOD(Recording, "a disk that is full when space is reserved suspends recording") {
  record();
  disk.reserve = ENOSPC;
  StreamPen other = open(2);
  for (int i = 0; i < 4; ++i) {
    add_frames(other, 0, 3 << 20, now);
    record();
  }
  CHECK(stats.suspended.value() == 1);
  CHECK(stats.dropped[DropReason::disk_full].value() > 0);
  disk.reserve = 0;
  pass(2s);
  record();
  CHECK(stats.suspended.value() == 0);
  CHECK(read()[1].back().lost->reason == DropReason::disk_full);
}

TEST_CASE_METHOD(Recording, "with less free space than min_free, recording is suspended") {
  record();
  disk.free_bytes = settings.min_free - 4096;
  pass(1s);
  for (int i = 0; i < 10; ++i) record();
  CHECK(stats.suspended.value() == 1);
  CHECK(stats.free_bytes.value() == static_cast<std::int64_t>(settings.min_free - 4096));
  disk.free_bytes.reset();
  pass(1s);
  record();
  // The file was not damaged: it continues.
  CHECK(files().size() == 1);
  CHECK(slices() == Lines{"0: 0", "11: 12, lost from 2"});
}

TEST_CASE_METHOD(Recording, "drops are reported at growing intervals, and at their end") {
  record();
  disk.free_bytes = 0;
  for (const Time end = now + 1h; now < end;) {
    record();
    pass(1s);
  }
  disk.free_bytes.reset();
  pass(1s);
  const auto drops = std::ranges::count_if(
      notices.all, [](const std::string& line) { return line.starts_with("dropped "); });
  CHECK(drops == 10);  // at once, after 1, 3, 7, 15, 25, 35, 45 and 55 min, and at the end
  CHECK(notices.all.front() == "suspended");
  CHECK(notices.all[notices.all.size() - 2] ==
        "dropped " + std::to_string(stats.dropped[DropReason::disk_full].value()));
  CHECK(notices.all.back() == "resumed");
}

TEST_CASE_METHOD(Recording, "a stream that ends while recording is suspended is ended later") {
  record();
  disk.free_bytes = 0;
  pass(1s);
  record();
  stream.close({.rows = 3, .complete = true});
  REQUIRE(stream.finish());
  commit();
  disk.free_bytes.reset();
  pass(2s);
  pass(2s);
  CHECK(slices() == Lines{"0: 0", "2: 3, lost from 2, closed"});
}

TEST_CASE_METHOD(Recording, "a stream whose end was in a failed commit is ended later") {
  record();
  add_frames(stream, 1 + frames, 10, now);
  stream.close({.rows = 3, .complete = true});
  REQUIRE(stream.finish());
  disk.write = EIO;
  commit();
  disk.write = 0;
  pass(2s);
  CHECK(slices() == Lines{"0: 0", "2: 3, lost from 2, closed"});
}

TEST_CASE_METHOD(Recording, "a file that cannot be sealed loses no slice") {
  record();
  disk.write = EIO;
  recorder->finish(now);
  CHECK(notices.all == Lines{"unsealed 1"});
  CHECK(slices() == Lines{"0: 0"});
}
