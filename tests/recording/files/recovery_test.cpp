// SPDX-License-Identifier: Apache-2.0
#include "recording/files/recovery.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "tests/recording/files/planned_file.h"

using namespace millrace;
using namespace millrace::recording;

namespace {

using Streams = std::vector<std::string>;

// A directory whose file 1 has slices of streams 1, 2 and 3, one commit each, three times. Only
// stream 2 ends.
struct Files {
  explicit Files(bool sealed) {
    auto writer = expect(SegmentWriter::begin(expect(directory.create(1)), head_of(1)));
    for (int commit = 0; commit < 3; ++commit) {
      for (TestStream* stream : {&one, &two, &three}) {
        stream->add(writer, 100, stream == &two && commit == 2);
        expect(writer.write());
      }
    }
    if (sealed) expect(writer.seal());
  }

  ~Files() {
    if (open().sealed()) keep_file(directory, 1);
  }
  SegmentFile open(FileNumber number = 1) const {
    return expect(SegmentFile::open(directory, number));
  }
  std::string path(FileNumber number = 1) const { return folder / Directory::file_name(number); }
  void flip(std::uint64_t offset) const {
    const FileDescriptor file(::open(path().c_str(), O_RDWR));
    char byte = 0;
    REQUIRE(::pread(file.get(), &byte, 1, static_cast<off_t>(offset)) == 1);
    byte = static_cast<char>(byte ^ 1);
    REQUIRE(::pwrite(file.get(), &byte, 1, static_cast<off_t>(offset)) == 1);
  }
  std::vector<std::uint64_t> streams() const {
    SegmentFile file = open();
    std::vector<std::uint64_t> streams;
    for (const StreamPart& part : file.parts()) streams.push_back(part.stream);
    return streams;
  }
  timespec last_write() const {
    struct stat facts {};
    REQUIRE(::stat(path().c_str(), &facts) == 0);
    return facts.st_mtim;
  }

  TemporaryDirectory folder{memory_folder()};
  Directory directory = expect(Directory::open(folder.path(), Directory::For::writing));
  TestStream one{1}, two{2}, three{3};
};

void set_last_write(const Files& files, std::int64_t seconds) {
  const timespec times[2] = {{seconds, 5}, {seconds, 5}};
  REQUIRE(::utimensat(AT_FDCWD, files.path().c_str(), times, 0) == 0);
}

}  // namespace

TEST_CASE("recovery seals a file, and names the streams that do not end in it") {
  const Files files(false);
  const auto recovered = expect(recover(files.directory, 1));
  CHECK(recovered.file == 1);
  CHECK(recovered.cut_bytes == 0);
  CHECK(recovered.lost_bytes == 0);
  CHECK(recovered.streams == Streams{"1 from position 300", "3 from position 300"});
  CHECK(files.open().sealed());
}

TEST_CASE("recovery of a sealed file changes nothing") {
  const Files files(true);
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
    const Files files(false);
    if (damaged) files.flip(files.open().chunks()[4].offset + 100);
    set_last_write(files, 1'000'000'000);
    expect(recover(files.directory, 1));
    CHECK(files.last_write().tv_sec == 1'000'000'000);
    CHECK(files.last_write().tv_nsec == 5);
  }
}

TEST_CASE("a damaged chunk is left out of the repaired file, and its streams are named") {
  const Files files(false);
  const ChunkPlace damaged = files.open().chunks()[4];  // the second slice of stream 2
  files.flip(damaged.offset + 100);
  const auto recovered = expect(recover(files.directory, 1));
  CHECK(recovered.cut_bytes == 0);
  CHECK(recovered.lost_bytes >= damaged.bytes);
  CHECK(recovered.streams ==
        Streams{"2 from position 100 to 200", "1 from position 300", "3 from position 300"});
  SegmentFile file = files.open();
  CHECK(file.verify());
  CHECK(file.chunks().size() < 9);
  CHECK(read_all(file).size() == 8);
  const std::vector<StreamPart> parts = file.parts();
  CHECK(std::vector{parts[0].lost, parts[1].lost, parts[2].lost} ==
        std::vector{false, true, false});
}

TEST_CASE("slices whose channel is damaged are counted, and the channel is named") {
  const Files files(false);
  files.flip(files.open().chunks()[2].offset + 100);  // the first slice of stream 3
  const auto recovered = expect(recover(files.directory, 1));
  CHECK(recovered.lost_bytes > 600);
  CHECK(recovered.streams == Streams{"1 from position 300", "channel 3, which is damaged"});
  CHECK(files.streams() == std::vector<std::uint64_t>{1, 2});
}

TEST_CASE("a file with damaged metadata gets its first stream number from the file before it") {
  const Files files(true);
  auto writer = expect(SegmentWriter::begin(expect(files.directory.create(2)), head_of(2)));
  const FileDescriptor file(::open(files.path(2).c_str(), O_RDWR));
  REQUIRE(::pwrite(file.get(), "??????", 6, 120) == 6);
  CHECK(files.open(2).head().run.empty());
  expect(recover(files.directory, 2));
  CHECK(files.open(2).head().first_stream == 4);
  CHECK(files.open(2).head().run == std::string(32, '0'));
}

TEST_CASE("a file is rewritten without streams, whose numbers are not used again") {
  const Files files(true);
  set_last_write(files, 1'000'000'000);
  SegmentFile before = files.open();
  const std::uint64_t saved = expect(rewrite_without(files.directory, 1, {1, 3, 99}));
  SegmentFile after = files.open();
  CHECK(saved == before.size() - after.size());
  CHECK(after.verify());
  CHECK(files.streams() == std::vector<std::uint64_t>{2});
  CHECK(after.head().first_stream == 4);
  CHECK(after.head().run == before.head().run);
  CHECK(after.head().id == before.head().id);
  CHECK(files.last_write().tv_sec == 1'000'000'000);
  const Messages all = read_all(before), left = read_all(after);
  CHECK(left.size() == 3);
  CHECK(is_part(left, all));
  CHECK_FALSE(std::filesystem::exists(files.path() + ".new"));
}

TEST_CASE("a file that has none of the streams is not rewritten") {
  const Files files(true);
  const auto before = std::filesystem::last_write_time(files.path());
  CHECK(expect(rewrite_without(files.directory, 1, {4, 5})) == 0);
  CHECK(std::filesystem::last_write_time(files.path()) == before);
}

TEST_CASE("a file of which all streams are removed stays, so that its numbers are known") {
  const Files files(true);
  expect(rewrite_without(files.directory, 1, {1, 2, 3}));
  CHECK(files.streams().empty());
  CHECK(files.open().head().first_stream == 4);
  CHECK(files.open().verify());
}

TEST_CASE("streams are also removed from a file with a damaged chunk") {
  const Files files(true);
  files.flip(files.open().chunks()[2].offset + 100);  // the first slice of stream 3
  expect(rewrite_without(files.directory, 1, {1}));
  SegmentFile file = files.open();
  CHECK(file.verify());
  CHECK(read_all(file).size() == 5);
  CHECK(files.streams() == std::vector<std::uint64_t>{2, 3});
}

TEST_CASE("an unsealed file is not rewritten without streams") {
  const Files files(false);
  const auto result = rewrite_without(files.directory, 1, {1});
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error() == "0000000001.mcap: is not sealed; repair the file first");
}

TEST_CASE("a slice that cannot follow those before it is damage, and is left out") {
  const TemporaryDirectory folder(memory_folder());
  const Directory directory = expect(Directory::open(folder.path(), Directory::For::writing));
  auto writer = expect(SegmentWriter::begin(expect(directory.create(1)), head_of(1)));
  TestStream stream(1);
  stream.add(writer, 10);
  const std::vector<std::byte> frames(20);
  const std::vector<TimedEvent> events{{{.kind = Event::Kind::frames, .count = 10}, Time()}};
  const Bytes bytes = frames;
  // Position 5 was passed before.
  writer.add(meta_of(1), 1, 0, {.stream = 1, .first_event = 2, .begin = 5, .events = events},
             {&bytes, 1});
  expect(writer.write());
  SegmentFile file = expect(SegmentFile::open(directory, 1));
  CHECK(file.parts().size() == 1);
  REQUIRE(file.damages().size() == 1);
  CHECK(file.damages()[0].why == "slice 1 of channel 1 in chunk 0 is not valid");
  CHECK(expect(recover(directory, 1)).lost_bytes > 0);
  SegmentFile recovered = expect(SegmentFile::open(directory, 1));
  CHECK(recovered.verify());
  CHECK(read_all(recovered).size() == 1);
}
