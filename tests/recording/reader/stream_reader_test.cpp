// SPDX-License-Identifier: Apache-2.0
#include "recording/reader/stream_reader.h"

#include <catch2/catch.hpp>
#include <fstream>

#include "tests/recording/reader/read_items.h"
#include "tests/recording/reader/recorded_directory.h"
#include "tests/support/descriptor_limit.h"

namespace millrace::recording {
namespace {

StreamReader reader_of(Recordings& recordings, std::uint64_t number) {
  return StreamReader(recordings, recordings.find(number).value());
}

// A stream of 200 frames, of which each file has half.
void record_in_two_files(RecordedDirectory& recorded) {
  TestStream stream(1);
  for (const FileNumber file : {1, 2}) {
    FileWriter writer = recorded.begin(file);
    stream.add(writer, 100, file == 2);
    seal(writer);
  }
}

// Inverts one byte of the file.
void damage(const std::string& path, std::uint64_t offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  const char byte = static_cast<char>(~file.get());
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(byte);
}

TEST_CASE("a stream is read from several files") {
  RecordedDirectory recorded;
  TestStream stream(1), other(2);
  for (const FileNumber file : {1, 2, 3}) {
    FileWriter writer = recorded.begin(file);
    stream.add(writer, 100 * file, file == 3);
    if (file != 2) other.add(writer, 1);
    seal(writer);
  }
  const auto recordings = recorded.read();
  StreamReader reader = reader_of(*recordings, 1);
  CHECK(read_all(reader) == "open frames:100 frames:200 frames:300 end totals:0 ");
  CHECK(reader.over());
  CHECK(reader.missing().empty());
}

TEST_CASE("the frames of a stream are the recorded ones") {
  RecordedDirectory recorded;
  FileWriter writer = recorded.begin(1);
  TestStream stream(1);
  std::string expected;
  for (const std::size_t frames : {7, 40'000, 3}) {
    for (const std::byte value : stream.frames_of(frames)) expected += static_cast<char>(value);
    stream.add(writer, frames, frames == 3);
  }
  seal(writer);
  const auto recordings = recorded.read();
  StreamReader reader = reader_of(*recordings, 1);
  std::string frames;
  read_all(reader, &frames);
  CHECK(frames == expected);
}

TEST_CASE("a stream is read while it is recorded") {
  RecordedDirectory recorded;
  REQUIRE(recorded.directory.lock_for_writing());
  FileWriter writer = recorded.begin(1);
  TestStream stream(1);
  stream.add(writer, 100);
  commit(writer);

  const auto recordings = recorded.read();
  StreamReader reader = reader_of(*recordings, 1);
  CHECK(reader.stream().open);
  CHECK(read_all(reader) == "open frames:100 ");
  CHECK_FALSE(reader.over());
  CHECK_FALSE(recordings->refresh());

  stream.add(writer, 200);
  CHECK(read_all(reader).empty());
  commit(writer);
  CHECK(read_all(reader).empty());
  CHECK(recordings->refresh());
  CHECK(read_all(reader) == "frames:200 ");

  // It goes on in the next file.
  stream.add(writer, 300);
  seal(writer);
  FileWriter next = recorded.begin(2);
  stream.add(next, 400);
  commit(next);
  CHECK(recordings->refresh());
  CHECK(read_all(reader) == "frames:300 frames:400 ");
  stream.add(next, 500, true);
  commit(next);
  CHECK(recordings->refresh());
  CHECK(read_all(reader) == "frames:500 end totals:0 ");
  CHECK(reader.over());
  CHECK(recordings->find(1)->whole);
}

TEST_CASE("a reader of a stream that is recorded gets all of a file that was deleted meanwhile") {
  RecordedDirectory recorded;
  REQUIRE(recorded.directory.lock_for_writing());
  FileWriter writer = recorded.begin(1);
  TestStream stream(1);
  stream.add(writer, 100);
  commit(writer);
  const auto recordings = recorded.read();
  StreamReader reader = reader_of(*recordings, 1);
  CHECK(read_all(reader) == "open frames:100 ");
  stream.add(writer, 200);
  seal(writer);
  FileWriter next = recorded.begin(2);
  stream.add(next, 300, true);
  commit(next);
  expect(recorded.directory.remove(1));
  CHECK(recordings->refresh());
  CHECK(read_all(reader) == "frames:200 frames:300 end totals:0 ");
  CHECK(reader.missing().empty());
}

TEST_CASE("a stream that the service did not end is aborted when the service is gone") {
  RecordedDirectory recorded;
  FileWriter writer = recorded.begin(1);
  TestStream stream(1);
  stream.add(writer, 100);
  commit(writer);
  const auto recordings = recorded.read();
  CHECK_FALSE(recordings->find(1)->open);
  CHECK_FALSE(recordings->find(1)->whole);
  StreamReader reader = reader_of(*recordings, 1);
  CHECK(read_all(reader) == "open frames:100 abort(recorder) ");
  CHECK(reader.missing() ==
        std::vector<MissingPart>{{100, 100, 0, "no end: the recorder stopped"}});
}

TEST_CASE("a stream of an earlier run is not open") {
  RecordedDirectory recorded;
  REQUIRE(recorded.directory.lock_for_writing());
  TestStream before(1), now(2);
  FileWriter crashed = recorded.begin(1, 'a');
  before.add(crashed, 100);
  commit(crashed);
  FileWriter writer = recorded.begin(2, 'b');
  now.add(writer, 100);
  commit(writer);
  const auto recordings = recorded.read();
  CHECK_FALSE(recordings->find(1)->open);
  CHECK(recordings->find(2)->open);
  StreamReader reader = reader_of(*recordings, 1);
  CHECK(read_all(reader) == "open frames:100 abort(recorder) ");
}

TEST_CASE("a stream whose first file was deleted begins with a gap") {
  RecordedDirectory recorded;
  record_in_two_files(recorded);
  CHECK(recorded.read()->find(1)->whole);
  expect(recorded.directory.remove(1));
  const auto recordings = recorded.read();
  CHECK_FALSE(recordings->find(1)->whole);
  StreamReader reader = reader_of(*recordings, 1);
  CHECK(read_all(reader) == "open(recorder) gap(recorder):100 frames:100 end totals:0 ");
  CHECK(reader.missing() == std::vector<MissingPart>{{0, 100, 2, "deleted"}});
}

TEST_CASE("a reader keeps a file that is deleted") {
  RecordedDirectory recorded;
  TestStream stream(1);
  FileWriter writer = recorded.begin(1);
  stream.add(writer, 100);
  stream.add(writer, 200, true);
  seal(writer);
  const auto recordings = recorded.read();
  StreamReader reader = reader_of(*recordings, 1);
  std::string text = printed(reader.next().value());
  expect(recorded.directory.remove(1));
  CHECK(recordings->refresh());
  CHECK(recordings->streams().empty());
  text += read_all(reader);
  CHECK(text == "open frames:100 frames:200 end totals:0 ");
}

TEST_CASE("a damaged chunk is a gap, and the missing part is named") {
  RecordedDirectory recorded;
  TestStream stream(1);
  FileWriter writer = recorded.begin(1);
  for (int i = 0; i < 3; ++i) stream.add(writer, 32'000, i == 2);  // each in a chunk of its own
  seal(writer);
  damage(recorded.file(1), 100'000);
  const auto recordings = recorded.read();
  StreamReader reader = reader_of(*recordings, 1);
  CHECK(read_all(reader) == "open frames:32000 gap(recorder):32000 frames:32000 end totals:0 ");
  CHECK(reader.missing() == std::vector<MissingPart>{{32'000, 64'000, 1, "damaged: file 1"}});
}

TEST_CASE("a damaged end is a gap up to the known end") {
  RecordedDirectory recorded;
  TestStream stream(1);
  FileWriter writer = recorded.begin(1);
  for (int i = 0; i < 3; ++i) stream.add(writer, 32'000, i == 2);
  seal(writer);
  damage(recorded.file(1), 170'000);
  const auto recordings = recorded.read();
  StreamReader reader = reader_of(*recordings, 1);
  CHECK(read_all(reader) == "open frames:32000 frames:32000 gap(recorder):32000 abort(recorder) ");
  CHECK(reader.missing() == std::vector<MissingPart>{{64'000, 96'000, 0, "damaged: file 1"}});
}

TEST_CASE("a stream in more files than the process may open is read whole") {
  RecordedDirectory recorded;
  TestStream stream(1);
  for (FileNumber file = 1; file <= 20; ++file) {
    FileWriter writer = recorded.begin(file);
    stream.add(writer, 10, file == 20);
    seal(writer);
  }
  const auto recordings = recorded.read();
  StreamReader reader = reader_of(*recordings, 1);
  const DescriptorLimit few(1);
  read_all(reader);
  CHECK(reader.over());
  CHECK(reader.missing().empty());
}

TEST_CASE("a file that cannot be opened is an error, and the next call tries it again") {
  RecordedDirectory recorded;
  record_in_two_files(recorded);
  const auto recordings = recorded.read();
  StreamReader reader = reader_of(*recordings, 1);
  {
    const DescriptorLimit none(0);
    CHECK_THROWS_WITH(reader.next(), Catch::StartsWith("0000000001.mcap: "));
  }
  CHECK(read_all(reader) == "open frames:100 frames:100 end totals:0 ");
  CHECK(reader.missing().empty());
}

TEST_CASE("a file that is no recording file any more is damaged, not deleted") {
  RecordedDirectory recorded;
  record_in_two_files(recorded);
  const auto recordings = recorded.read();
  std::ofstream(recorded.file(1)) << "This is no recording file, but text.\n";
  StreamReader reader = reader_of(*recordings, 1);
  read_all(reader);
  REQUIRE(reader.missing().size() == 1);
  CHECK(reader.missing()[0].why == "damaged: file 1");
}

TEST_CASE("a reader continues in the file that replaces the one it reads") {
  RecordedDirectory recorded;
  REQUIRE(recorded.directory.lock_for_writing());
  TestStream stream(1), again(1);
  FileWriter writer = recorded.begin(1);
  stream.add(writer, 100);
  commit(writer);
  const auto recordings = recorded.read();
  StreamReader reader = reader_of(*recordings, 1);
  CHECK(read_all(reader) == "open frames:100 ");

  FileWriter replacement =
      expect(FileWriter::begin(expect(recorded.directory.create_temporary(1)), head_of(1)));
  again.add(replacement, 100);
  again.add(replacement, 200, true);
  seal(replacement);
  expect(recorded.directory.replace(1));
  CHECK(recordings->refresh());
  CHECK(read_all(reader) == "frames:200 end totals:0 ");
  CHECK(reader.missing().empty());
}

}  // namespace
}  // namespace millrace::recording
