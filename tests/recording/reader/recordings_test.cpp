// SPDX-License-Identifier: Apache-2.0
#include "recording/reader/recordings.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <system_error>

#include "base/file_descriptor.h"
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

TEST_CASE("a file that another reader has put into the catalog since it was sealed counts once") {
  RecordedDirectory recorded;
  FileWriter writer = recorded.begin(1);
  TestStream(1).add(writer, 10, true);
  commit(writer);
  const auto recordings = recorded.read();
  CHECK(recordings->find(1)->frames == 10);
  seal(writer);
  recorded.read();
  CHECK(recordings->refresh());
  CHECK(recordings->find(1)->frames == 10);
  CHECK(recordings->files_of(1) == std::vector<FileNumber>{1});
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
  const TimedEvent events[] = {{{.kind = Event::Kind::end}, Time()}};
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
  CHECK(recordings->files() == std::vector<FileNumber>{1});
  CHECK(recordings->file(2) == nullptr);
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
