// SPDX-License-Identifier: Apache-2.0
#include "recording/writer/recorder.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <vector>

#include "tests/recording/writer/recorder_under_test.h"
#include "tests/support/allocations.h"

using namespace millrace;
using namespace millrace::recording;
using namespace std::chrono_literals;
using Numbers = std::vector<FileNumber>;
using Lines = std::vector<std::string>;

namespace {

struct RecorderFixture : RecorderUnderTest {
  RecorderFixture() { start(); }
};

}  // namespace

TEST_CASE_METHOD(RecorderFixture, "a stream is in the file after the next commit") {
  StreamPen stream = open(1);
  add_frames(stream, 1, 100, now);
  commit();
  const auto slices = read()[1];
  REQUIRE(slices.size() == 1);
  CHECK(slices[0].events.size() == 2);
  CHECK(slices[0].frames == frames_from(1, 100));
  CHECK(stats.slices.value() == 1);
  CHECK(stats.unsynced_bytes.value() == 0);
}

TEST_CASE_METHOD(RecorderFixture, "there is one commit every `commit`") {
  StreamPen stream = open(1);
  for (int i = 0; i < 20; ++i) {
    add_frames(stream, static_cast<std::uint64_t>(1 + 10 * i), 10, now);
    pass(settings.commit / 10);
  }
  const std::size_t slices = read()[1].size();
  CHECK(slices >= 2);
  CHECK(slices <= 3);
}

TEST_CASE_METHOD(RecorderFixture, "a commit has 4 MiB at most, and the pages that are waiting") {
  StreamPen stream = open(1);
  const std::size_t frames = PagePool::page_bytes / sizeof(std::int16_t);
  for (int i = 0; i < 72; ++i) {
    add_frames(stream, 0, frames, now);
    writer.hand_over();
    pool.filled().drain(taken);
    for (Page* const page : taken) recorder->take(*page, now), recorder->work(now);
  }
  const auto slices = read()[1];
  REQUIRE(slices.size() == 2);  // the first page was written at once
  CHECK(slices[1].frames.size() >= settings.commit_bytes);
  CHECK(slices[1].frames.size() < settings.commit_bytes + PagePool::page_bytes);
}

TEST_CASE_METHOD(RecorderFixture,
                 "a file is sealed when it is long enough, and the stream continues") {
  settings.file_size = 100'000;
  recorder.reset();
  start();
  StreamPen stream = open(1);
  for (int i = 0; i < 10; ++i) {
    add_frames(stream, static_cast<std::uint64_t>(1000 * i), 1000, now);
    commit();
    add_frames(stream, 0, 20'000, now);
    commit();
  }
  REQUIRE(files().size() > 3);
  CHECK(is_sealed(files().size() - 1));
  const auto slices = read()[1];
  REQUIRE(slices.size() == 20);
  for (std::uint32_t i = 0; i < 20; ++i) CHECK(slices[i].number == i);
}

TEST_CASE_METHOD(RecorderFixture, "at the end the rest is written, and the file is sealed") {
  StreamPen stream = open(1);
  add_frames(stream, 1, 100, now);
  stream.close({.rows = 1, .complete = true});
  REQUIRE(stream.finish());
  writer.hand_over();
  pool.filled().drain(taken);
  for (Page* const page : taken) recorder->take(*page, now);
  recorder->finish(now);
  CHECK(is_sealed(1));
  CHECK(read()[1].at(0).closing->rows == 1);
  CHECK(notices.all == Lines{"sealed 1"});
}

TEST_CASE_METHOD(RecorderFixture, "a file that a crash left is sealed at the next start") {
  StreamPen stream = open(3);
  add_frames(stream, 1, 100, now);
  commit();
  recorder.reset();
  start();
  CHECK(files() == Numbers{1, 2});
  CHECK(is_sealed(1));
  CHECK(notices.all == Lines{"recovered 1, streams 1", "sealed 1"});
  CHECK(stats.files[FileEvent::recovered].value() == 1);
  CHECK(recorder->series().next_stream() == 4);
}

TEST_CASE_METHOD(RecorderFixture,
                 "numbers of streams that are in no file since are not used again") {
  StreamPen stream = open(3);
  add_frames(stream, 1, 100, now);
  recorder->finish(now);
  commit();
  for (int i = 0; i < 3; ++i) {
    recorder.reset();
    start();
    recorder->finish(now);
  }
  recorder.reset();
  start();
  CHECK(files() == Numbers{1, 2, 3, 4, 5, 6});
  CHECK(recorder->series().next_stream() == 4);
}

TEST_CASE_METHOD(RecorderFixture, "numbers of streams are not used again if their files are gone") {
  StreamPen stream = open(3);
  add_frames(stream, 1, 100, now);
  commit();
  recorder.reset();  // as after a kill
  for (const FileNumber file : files())
    std::filesystem::remove(directory / Directory::file_name(file));
  start();
  CHECK(files() == Numbers{1});
  CHECK(recorder->series().next_stream() == 4);
}

TEST_CASE_METHOD(RecorderFixture, "numbers of removed streams are not used again") {
  recorder.reset();
  std::filesystem::remove(directory / "next");
  expect(Directory::open(directory.path(), Directory::For::reading)).add_removed({7, 5});
  start();
  CHECK(recorder->series().next_stream() == 8);
}

TEST_CASE_METHOD(RecorderFixture,
                 "lists of numbers that are damaged are named, and the others are used") {
  recorder->finish(now);
  recorder.reset();
  std::ofstream(directory / "next") << "x\n";
  std::ofstream(directory / "removed") << "17";
  notices.all.clear();
  start();
  CHECK(notices.all == Lines{"skipped next", "skipped removed"});
  CHECK(files() == Numbers{1, 2});
}

TEST_CASE_METHOD(RecorderFixture, "without any number that can be read, nothing is recorded") {
  recorder.reset();
  std::filesystem::remove(directory / Directory::file_name(1));
  std::ofstream(directory / "next") << "x\n";
  start();
  CHECK(stats.suspended.value() == 1);
  CHECK(recorder->series().next_stream() == 0);
}

TEST_CASE_METHOD(RecorderFixture, "a newest file that cannot be read is left alone, and named") {
  StreamPen stream = open(3);
  add_frames(stream, 1, 100, now);
  commit();
  recorder->finish(now);
  recorder.reset();
  std::ofstream(directory / Directory::file_name(2)) << "This is no recording file, but text.\n";
  std::filesystem::create_directory(directory / Directory::file_name(3));
  notices.all.clear();
  start();
  CHECK(notices.all == Lines{"skipped 0000000003.mcap", "skipped 0000000002.mcap"});
  CHECK(files() == Numbers{1, 2, 3, 4});
  CHECK(recorder->series().next_stream() == 4);
  CHECK(stats.suspended.value() == 0);
}

TEST_CASE_METHOD(RecorderFixture, "a directory that other users have access to is named") {
  recorder.reset();
  std::filesystem::permissions(directory.path(), std::filesystem::perms(0755));
  notices.all.clear();
  start();
  CHECK(notices.all.front() == "shared " + std::to_string(0755));
}

TEST_CASE_METHOD(RecorderFixture, "while a command repairs a large file, recording is suspended") {
  recorder->finish(now);
  recorder.reset();
  auto repairing = expect(Directory::open(directory.path(), Directory::For::writing));
  REQUIRE(repairing.lock_for_writing());
  FileDescriptor maintenance = repairing.lock_for_maintenance();
  notices.all.clear();
  start();
  CHECK(notices.all == Lines{"suspended"});
  CHECK(recorder->series().next_stream() == 1);
  maintenance = FileDescriptor();
  repairing.unlock_writing();
  pass(2s);
  CHECK(notices.all == Lines{"suspended", "resumed"});
  CHECK(files() == Numbers{1, 2});
}

TEST_CASE_METHOD(RecorderFixture, "a second recorder of the directory is refused") {
  RecordingStats others;
  CHECK_THROWS_WITH(Recorder(settings, pool, others, notices),
                    Catch::EndsWith("another process records into this directory"));
}

TEST_CASE_METHOD(RecorderFixture, "a recorder waits for a writer that is done soon") {
  recorder->finish(now);
  recorder.reset();
  settings.lock_wait = std::chrono::hours(1);
  auto repairing = expect(Directory::open(directory.path(), Directory::For::writing));
  REQUIRE(repairing.lock_for_writing());
  auto started = std::async(std::launch::async, [this] { start(); });
  CHECK(started.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout);
  repairing = expect(Directory::open(directory.path(), Directory::For::writing));
  started.get();
  CHECK(files() == Numbers{1, 2});
}

TEST_CASE_METHOD(RecorderFixture, "a number that is taken is left alone") {
  recorder->finish(now);
  {
    const auto directory_now = expect(Directory::open(directory.path(), Directory::For::reading));
    (void)expect(directory_now.create(2));
  }
  const std::string taken_file = directory.path() + "/0000000002.mcap";
  std::ofstream(taken_file) << "of another program";
  StreamPen stream = open(1);
  add_frames(stream, 1, 100, now);
  commit();
  CHECK(files() == Numbers{1, 2, 3});
  CHECK(std::filesystem::file_size(taken_file) == std::string("of another program").size());
}

TEST_CASE_METHOD(RecorderFixture, "a removed directory suspends recording") {
  std::filesystem::remove_all(directory.path());
  StreamPen stream = open(1);
  for (int i = 0; i < 20; ++i) {
    add_frames(stream, 1, 100, now);
    commit();
  }
  CHECK(notices.all.at(0) == "unsealed 1");
  CHECK(notices.all.at(1) == "suspended");
  CHECK(stats.suspended.value() == 1);
  CHECK(stats.dropped[DropReason::io_error].value() > 10);
}

TEST_CASE_METHOD(RecorderFixture, "while memory is short, slices are dropped") {
  StreamPen stream = open(1);
  add_frames(stream, 1, 100, now);
  recorder->shed(true);
  commit();
  recorder->shed(false);
  add_frames(stream, 101, 100, now);
  commit();
  const auto slices = read()[1];
  REQUIRE(slices.size() == 1);
  CHECK(slices[0].number == 1);
  CHECK(slices[0].lost->reason == DropReason::memory);
  CHECK(slices[0].begin == 100);
}

TEST_CASE_METHOD(RecorderFixture, "an answer keeps the number of its batch") {
  StreamPen stream = open(1);
  stream.answer(4, BatchId{70'000}, {Answer::Kind::json, "1", false});
  stream.answer(5, BatchId{70'001}, {Answer::Kind::text, "two", false});
  commit();
  const KeptSlice slice = read()[1].at(0);
  CHECK(slice.answers[1] == std::pair<std::uint64_t, std::string>(5, "two"));
  CHECK(slice.batches == std::vector<std::uint64_t>{70'000, 70'001});
}

TEST_CASE_METHOD(RecorderFixture,
                 "slices that wait for their commit are lost if the file is removed") {
  StreamPen stream = open(1);
  add_frames(stream, 1, 10, now);
  commit();
  // Events were dropped between these frames, so the first of them are a slice before the commit.
  add_frames(stream, 11, 10, now);
  writer.shed(true);
  add_frames(stream, 21, 10, now);
  writer.shed(false);
  add_frames(stream, 31, 10, now);
  writer.hand_over();
  std::filesystem::remove(directory / Directory::file_name(1));
  now += 2s;
  commit();
  commit();
  const KeptSlice last = read()[1].back();
  CHECK(last.lost == LostEvents{.first_event = 2, .begin = 10, .reason = DropReason::io_error});
  CHECK(last.frames == frames_from(31, 10));
  CHECK(notices.all == Lines{"dropped 1", "unsealed 1"});
}
