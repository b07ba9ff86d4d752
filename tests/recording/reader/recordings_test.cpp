// SPDX-License-Identifier: Apache-2.0
#include "recording/reader/recordings.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/file_descriptor.h"
#include "recording/reader/stream_frames.h"
#include "tests/recording/reader/recorded_directory.h"
#include "tests/support/descriptor_limit.h"

namespace millrace::recording {
namespace {

std::vector<std::uint64_t> numbers_of(const std::vector<RecordedStream>& streams) {
  std::vector<std::uint64_t> numbers;
  for (const RecordedStream& stream : streams) numbers.push_back(stream.meta.number);
  return numbers;
}

TEST_CASE("streams are listed by number with their facts") {
  RecordedDirectory recorded;
  TestStream first(1), second(2);
  FileWriter writer = recorded.begin(1);
  second.add(writer, 30, true);
  first.add(writer, 10);
  seal(writer);
  FileWriter next = recorded.begin(2);
  first.add(next, 20, true);
  commit(next);

  const auto recordings = recorded.read();
  const std::vector<RecordedStream>& streams = recordings->streams();
  REQUIRE(streams.size() == 2);
  CHECK(streams[0].meta == first.meta());
  CHECK(streams[0].frames == 30);
  CHECK(streams[0].end == 30);
  CHECK(streams[0].first_file == 1);
  CHECK(streams[0].last_file == 2);
  CHECK(streams[0].whole);
  CHECK(streams[1].meta == second.meta());
  CHECK(streams[1].last_file == 1);
  CHECK(recordings->find(2)->frames == 30);
  CHECK_FALSE(recordings->find(3));
  CHECK(numbers_of(recordings->find("call-1")) == std::vector<std::uint64_t>{1});
  CHECK(recordings->find("call-3").empty());
}

TEST_CASE("streams of sealed and unsealed files are one list by number") {
  RecordedDirectory recorded;
  for (const FileNumber file : {1, 2, 3, 4}) {
    FileWriter writer = recorded.begin(file);
    for (const std::uint64_t number : {file, file + 4, 9 - file, std::uint64_t{20}}) {
      TestStream stream(number);
      stream.add(writer, 1, true);
    }
    if (file == 1 || file == 3)
      seal(writer);
    else
      commit(writer);
  }
  const auto recordings = recorded.read();
  CHECK(numbers_of(recordings->streams()) ==
        std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 7, 8, 20});
  CHECK(recordings->streams().back().first_file == 1);
  CHECK(recordings->streams().back().last_file == 4);
}

TEST_CASE("a file that was sealed since the last refresh counts once") {
  RecordedDirectory recorded;
  FileWriter writer = recorded.begin(1);
  TestStream(1).add(writer, 10, true);
  commit(writer);
  const auto recordings = recorded.read();
  CHECK(recordings->find(1)->frames == 10);
  seal(writer);
  CHECK(recordings->refresh());
  CHECK(recordings->find(1)->frames == 10);
  CHECK(recordings->files_of(*recordings->find(1)) == std::vector<FileNumber>{1});
  CHECK_FALSE(recordings->refresh());
}

TEST_CASE("a file that was replaced is read again, and one that was deleted is left out") {
  RecordedDirectory recorded;
  for (const FileNumber file : {1, 2}) {
    FileWriter writer = recorded.begin(file);
    TestStream(10 + file).add(writer, 1, true);
    seal(writer);
  }
  const auto before = recorded.read(), after = recorded.read();
  FileWriter writer =
      expect(FileWriter::begin(expect(recorded.directory.create_temporary(2)), head_of(2)));
  TestStream(50).add(writer, 1, true);
  seal(writer);
  expect(recorded.directory.replace(2));
  expect(recorded.directory.remove(1));
  CHECK(after->refresh());
  CHECK(numbers_of(after->streams()) == std::vector<std::uint64_t>{50});
  CHECK(numbers_of(before->streams()) == std::vector<std::uint64_t>{11, 12});
}

TEST_CASE("a file whose size or time changed is not opened again for its readers") {
  RecordedDirectory recorded;
  FileWriter writer = recorded.begin(1);
  TestStream(1).add(writer, 1, true);
  seal(writer);
  const auto recordings = recorded.read();
  const auto before = expect(recordings->file(1));
  std::filesystem::last_write_time(recorded.file(1), {});
  CHECK(recordings->refresh());
  CHECK(expect(recordings->file(1)) == before);
  CHECK(recordings->find(1)->frames == 1);
}

TEST_CASE("many files are one list, and a reader of known files needs no list") {
  RecordedDirectory recorded;
  std::vector<std::uint64_t> numbers;
  TestStream across(1000);
  for (FileNumber file = 1; file <= 40; ++file) {
    FileWriter writer = recorded.begin(file);
    TestStream(file).add(writer, file, true);
    across.add(writer, 1, file == 40);
    seal(writer);
    numbers.push_back(file);
  }
  numbers.push_back(1000);
  const auto recordings = recorded.read();
  CHECK(numbers_of(recordings->streams()) == numbers);
  CHECK(recordings->find(17)->frames == 17);
  CHECK(recordings->find(1000)->whole);

  const auto unread = expect(Recordings::open(recorded.path(), Recordings::Summaries::skipped));
  CHECK(unread->streams().empty());
  CHECK(unread->files_of({.first_file = 3, .last_file = 5}) == std::vector<FileNumber>{3, 4, 5});
  CHECK(StreamFrames(*unread, *recordings->find(1000)).frames() == 40);
}

// Root may write any directory, so root reads it as another user.
TEST_CASE("a directory that cannot be written is read, and nothing is made in one that can") {
  RecordedDirectory recorded;
  FileWriter writer = recorded.begin(1);
  TestStream(1).add(writer, 1, true);
  seal(writer);
  REQUIRE(::chmod(recorded.file(1).c_str(), 0444) == 0);
  REQUIRE(::chmod(recorded.path().c_str(), 0555) == 0);
  const bool root = ::geteuid() == 0;
  if (root) REQUIRE(::seteuid(65534) == 0);
  const auto recordings = Recordings::open(recorded.path());
  if (root) REQUIRE(::seteuid(0) == 0);
  REQUIRE(::chmod(recorded.path().c_str(), 0700) == 0);
  REQUIRE(recordings);
  CHECK((*recordings)->streams().size() == 1);
  recorded.read();
  CHECK(std::distance(std::filesystem::directory_iterator(recorded.path()), {}) == 1);
}

TEST_CASE("a removed stream is left out") {
  RecordedDirectory recorded;
  FileWriter writer = recorded.begin(1);
  for (const std::uint64_t number : {1, 2, 3}) TestStream(number).add(writer, 1, true);
  seal(writer);
  const auto recordings = recorded.read();
  recorded.directory.add_removed({2});
  CHECK(recordings->refresh());
  CHECK(numbers_of(recordings->streams()) == std::vector<std::uint64_t>{1, 3});
  CHECK_FALSE(recordings->find(2));
}

TEST_CASE("a stream with a lost part is not whole") {
  RecordedDirectory recorded;
  FileWriter writer = recorded.begin(1);
  TestStream stream(1);
  stream.add(writer, 10, true);
  const StreamMeta meta = meta_of(2);
  const RecordedEvent events[] = {{{.kind = Event::Kind::end}, Time()}};
  const Slice slice{.stream = 2,
                    .first_event = 1,
                    .begin = 5,
                    .events = events,
                    .lost = LostEvents{},
                    .closing = StreamTotals{.complete = true}};
  writer.add(meta, 1, 0, slice, {});
  seal(writer);
  const auto recordings = recorded.read();
  CHECK(recordings->find(1)->whole);
  CHECK_FALSE(recordings->find(2)->whole);
}

TEST_CASE("a file that cannot be read is named, and the others are read") {
  RecordedDirectory recorded;
  FileWriter writer = recorded.begin(1);
  TestStream(1).add(writer, 1, true);
  seal(writer);
  std::ofstream(recorded.file(2)) << "This is no recording file, but text.\n";
  const auto recordings = recorded.read();
  REQUIRE(recordings->problems().size() == 1);
  CHECK_THAT(recordings->problems()[0], Catch::Contains("0000000002.mcap"));
  CHECK(recordings->file(2).error() == "damaged: file 2");
  CHECK(numbers_of(recordings->streams()) == std::vector<std::uint64_t>{1});
}

TEST_CASE(
    "without a free descriptor, no file counts as deleted: refresh throws, and can be repeated") {
  RecordedDirectory recorded;
  FileWriter writer = recorded.begin(1);
  TestStream(1).add(writer, 1, true);
  seal(writer);
  const auto recordings = recorded.read();
  {
    const DescriptorLimit none(0);
    CHECK_THROWS_AS(recordings->refresh(), std::system_error);
  }
  FileWriter next = recorded.begin(2);
  TestStream(2).add(next, 1, true);
  seal(next);
  CHECK(recordings->refresh());
  CHECK(numbers_of(recordings->streams()) == std::vector<std::uint64_t>{1, 2});
}

TEST_CASE("opening recordings raises the limit on descriptors") {
  RecordedDirectory recorded;
  const std::uint64_t before = descriptor_limit();
  const DescriptorLimit few(20);
  REQUIRE(descriptor_limit() < before);
  recorded.read();
  CHECK(descriptor_limit() >= before);
}

TEST_CASE("a directory that does not exist is an error that names the path") {
  const auto recordings = Recordings::open("/tmp/millrace-missing/recordings");
  REQUIRE_FALSE(recordings);
  CHECK_THAT(recordings.error(), Catch::Contains("/tmp/millrace-missing/recordings"));
}

TEST_CASE("an empty directory has no streams") {
  RecordedDirectory recorded;
  const auto recordings = recorded.read();
  CHECK(recordings->streams().empty());
  CHECK_FALSE(recordings->refresh());
}

}  // namespace
}  // namespace millrace::recording
