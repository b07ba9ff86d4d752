// SPDX-License-Identifier: Apache-2.0
#include "recording/files/recovery.h"

#include <catch2/catch.hpp>

#include "tests/recording/files/three_streams.h"

using namespace millrace;
using namespace millrace::recording;

namespace {

using Streams = std::vector<std::string>;

}  // namespace

TEST_CASE("recovery seals a file, and names the streams that do not end in it") {
  const ThreeStreams files(false);
  const auto recovered = expect(recover(files.directory, 1));
  CHECK(recovered.file == 1);
  CHECK(recovered.cut_bytes == 0);
  CHECK(recovered.lost_bytes == 0);
  CHECK(recovered.streams == Streams{"1 from position 300", "3 from position 300"});
  CHECK(files.open().sealed());
}

TEST_CASE("recovery of a sealed file changes nothing") {
  const ThreeStreams files(true);
  const std::uint64_t size = files.open().size();
  const auto recovered = expect(recover(files.directory, 1));
  CHECK(recovered.streams.empty());
  CHECK(files.open().size() == size);
}

TEST_CASE("recovery writes the same file as the writer that seals it") {
  const PlannedFile open(5), sealed(5, 3, true);
  expect(recover(open.directory, 1));
  CHECK(open.content() == sealed.bytes);
}

TEST_CASE("recovery keeps the time of the last write") {
  for (const bool damaged : {false, true}) {
    const ThreeStreams files(false);
    if (damaged) files.flip(files.open().chunks()[4].offset + 100);
    files.set_last_write(1'000'000'000);
    expect(recover(files.directory, 1));
    CHECK(files.last_write().tv_sec == 1'000'000'000);
    CHECK(files.last_write().tv_nsec == 5);
  }
}

TEST_CASE("a damaged chunk is left out of the repaired file, and its streams are named") {
  const ThreeStreams files(false);
  const ChunkPlace damaged = files.open().chunks()[4];  // the second slice of stream 2
  files.flip(damaged.offset + 100);
  const auto recovered = expect(recover(files.directory, 1));
  CHECK(recovered.cut_bytes == 0);
  CHECK(recovered.lost_bytes >= damaged.bytes);
  CHECK(recovered.streams ==
        Streams{"2 from position 100 to 200", "1 from position 300", "3 from position 300"});
  RecordingFile file = files.open();
  CHECK(file.verify());
  CHECK(file.chunks().size() < 9);
  CHECK(read_all(file).size() == 8);
  const std::vector<StreamPart> parts = file.parts();
  CHECK(std::vector{parts[0].lost, parts[1].lost, parts[2].lost} ==
        std::vector{false, true, false});
}

TEST_CASE("a damaged last chunk is lost, and not cut as what an interrupted write left") {
  // A sample, and the marker before the chunk.
  for (const int from_chunk : {100, -20}) {
    const ThreeStreams files(false);
    const std::uint64_t size = files.open().size();
    const ChunkPlace last = files.open().chunks().back();
    files.flip(last.offset + static_cast<std::uint64_t>(from_chunk));
    const auto recovered = expect(recover(files.directory, 1));
    CHECK(recovered.cut_bytes == 0);
    CHECK(recovered.lost_bytes >= last.bytes);
    CHECK(recovered.lost_bytes < size);
    CHECK(recovered.streams == Streams{"1 from position 300", "3 from position 200"});
    CHECK(files.open().verify());
  }
}

TEST_CASE("the last chunk of a sealed file is lost if both it and the summary are damaged") {
  for (const int from_chunk : {100, -20}) {
    const ThreeStreams files(true);
    const ChunkPlace last = files.open().chunks().back();
    files.flip(last.offset + static_cast<std::uint64_t>(from_chunk));
    files.flip(files.open().size() - 60);
    CHECK(expect(recover(files.directory, 1)).lost_bytes >= last.bytes);
    CHECK(files.open().verify());
  }
}

TEST_CASE("a damaged summary alone loses nothing") {
  const ThreeStreams files(true);
  files.flip(files.open().size() - 60);
  const auto recovered = expect(recover(files.directory, 1));
  CHECK(recovered.cut_bytes > 0);
  CHECK(recovered.lost_bytes == 0);
  CHECK(files.open().verify());
}

TEST_CASE("zeros after the last whole chunk are those of a loss of power") {
  const ThreeStreams files(false);
  std::filesystem::resize_file(files.path(), files.open().size() + 5000);
  const auto recovered = expect(recover(files.directory, 1));
  CHECK(recovered.cut_bytes == 5000);
  CHECK(recovered.lost_bytes == 0);
}

TEST_CASE("slices whose channel is damaged are counted, and the channel is named") {
  const ThreeStreams files(false);
  files.flip(files.open().chunks()[2].offset + 100);  // the first slice of stream 3
  const auto recovered = expect(recover(files.directory, 1));
  CHECK(recovered.lost_bytes > 600);
  CHECK(recovered.streams == Streams{"1 from position 300", "channel 3, which is damaged"});
  CHECK(files.streams() == std::vector<std::uint64_t>{1, 2});
}

TEST_CASE("a file with damaged metadata gets its first stream number from the file before it") {
  const ThreeStreams files(true);
  auto writer = expect(FileWriter::begin(expect(files.directory.create(2)), head_of(2)));
  const FileDescriptor file(::open(files.path(2).c_str(), O_RDWR));
  REQUIRE(::pwrite(file.get(), "??????", 6, 120) == 6);
  CHECK(files.open(2).head().run.empty());
  expect(recover(files.directory, 2));
  CHECK(files.open(2).head().first_stream == 4);
  CHECK(files.open(2).head().run == std::string(32, '0'));
}

TEST_CASE("a slice that cannot follow those before it is damage, and is left out") {
  const TemporaryDirectory folder(memory_folder());
  const Directory directory = expect(Directory::open(folder.path(), Directory::For::writing));
  auto writer = expect(FileWriter::begin(expect(directory.create(1)), head_of(1)));
  TestStream stream(1);
  stream.add(writer, 10);
  const std::vector<std::byte> frames(20);
  const std::vector<RecordedEvent> events{{{.kind = Event::Kind::frames, .count = 10}, Time()}};
  const Bytes bytes = frames;
  // Position 5 was passed before.
  writer.add(meta_of(1), 1, 0, {.stream = 1, .first_event = 2, .begin = 5, .events = events},
             {&bytes, 1});
  expect(writer.write());
  RecordingFile file = expect(RecordingFile::open(directory, 1));
  CHECK(file.parts().size() == 1);
  REQUIRE(file.damages().size() == 1);
  CHECK(file.damages()[0].why == "slice 1 of channel 1 in chunk 0 is not valid");
  CHECK(expect(recover(directory, 1)).lost_bytes > 0);
  RecordingFile recovered = expect(RecordingFile::open(directory, 1));
  CHECK(recovered.verify());
  CHECK(read_all(recovered).size() == 1);
}
