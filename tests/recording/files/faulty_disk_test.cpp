// SPDX-License-Identifier: Apache-2.0
// The disk cannot read a part of a file, or is full.
#include <catch2/catch.hpp>
#include <cerrno>

#include "recording/files/file_window.h"
#include "recording/files/recovery.h"
#include "tests/recording/files/three_streams.h"
#include "tests/support/allocations.h"
#include "tests/support/failing_disk.h"

using namespace millrace;
using namespace millrace::recording;

namespace {

using Lines = std::vector<std::string>;

// The first 4 chunks of the file have 16 KiB each, of streams 1 to 4. The disk cannot read the
// second one from its middle on.
struct UnreadableChunk {
  explicit UnreadableChunk(bool sealed = true) {
    auto writer = expect(SegmentWriter::begin(expect(directory.create(1)), head_of(1)));
    for (std::uint64_t number = 1; number <= 4; ++number) {
      TestStream(number).add(writer, 8192, true);
      expect(writer.write());
    }
    if (sealed) expect(writer.seal());
    bad = open().chunks()[1];
    disk.unreadable = {bad.offset + 8192, bad.offset + 8192 + 100};
  }
  SegmentFile open() const { return expect(SegmentFile::open(directory, 1, Reading::copied)); }

  TemporaryDirectory folder{memory_folder()};
  Directory directory = expect(Directory::open(folder.path(), Directory::For::writing));
  ChunkPlace bad;
  test::FailingDisk disk;
};

}  // namespace

TEST_CASE("what the disk cannot read is a damaged chunk, and the others are read") {
  const UnreadableChunk files;
  SegmentFile file = files.open();
  CHECK_FALSE(file.verify());
  REQUIRE(file.damages().size() == 1);
  CHECK(file.damages()[0].why ==
        "chunk 1 cannot be read: Input/output error: slices of streams 2 are lost");
  CHECK(read_all(file).size() == 3);
}

TEST_CASE("a stream is removed from a file that the disk cannot read whole") {
  UnreadableChunk files;
  const Cleared cleared = expect(rewrite_without(files.directory, 1, {1}));
  CHECK(cleared.damages == Lines{"0000000001.mcap: " + std::to_string(files.bad.bytes) +
                                 " bytes in 1 chunk were damaged before, and stay as they are: "
                                 "slices of streams 2 cannot be read"});
  files.disk.unreadable.reset();
  SegmentFile file = files.open();
  CHECK(file.channels().size() == 3);
  CHECK(read_all(file).size() == 2);
  CHECK_FALSE(file.verify());
}

TEST_CASE("an unsealed file that the disk cannot read whole is recovered, and the loss is named") {
  UnreadableChunk files(false);
  const Recovered recovered = expect(recover(files.directory, 1));
  CHECK(recovered.lost_bytes >= files.bad.bytes);
  files.disk.unreadable.reset();
  SegmentFile file = files.open();
  CHECK(file.sealed());
  CHECK(read_all(file).size() == 3);
}

TEST_CASE("a summary that the disk cannot read is damage, and the chunks are read") {
  UnreadableChunk files;
  SegmentFile whole = files.open();
  files.disk.unreadable = {whole.size() - 10, whole.size()};
  SegmentFile file = files.open();
  CHECK_FALSE(file.sealed());
  CHECK(file.damages().at(0).why == "the end of the file cannot be read: Input/output error");
  CHECK(read_all(file).size() == 4);
}

TEST_CASE("a file whose first records the disk cannot read is an error that says so") {
  UnreadableChunk files;
  files.disk.unreadable = {0, 100};
  CHECK(SegmentFile::open(files.directory, 1).error() == "0000000001.mcap: Input/output error");
  CHECK(recover(files.directory, 1).error() == "0000000001.mcap: Input/output error");
  CHECK(rewrite_without(files.directory, 1, {1}).error() == "0000000001.mcap: Input/output error");
}

TEST_CASE("a window reads each byte once, and what is read ahead may fail") {
  UnreadableChunk files;
  const FileDescriptor file = expect(files.directory.open_to_read(1));
  FileWindow window;
  window.reset(file.get(), file_size(file.get()));
  files.disk.read_bytes = 0;
  std::uint64_t at = 0;
  while (at + 3000 <= files.bad.offset) {
    REQUIRE(window.read(at, 3000).size() == 3000);
    CHECK_FALSE(window.unreadable());
    at += 2000;
  }
  CHECK(files.disk.read_bytes <= files.bad.offset + 8192);
  CHECK(window.read(files.bad.offset, files.bad.bytes).size() == files.bad.bytes);
  CHECK(window.unreadable() == std::errc::io_error);
}

TEST_CASE("a damaged footer does not load the file into memory") {
  const TemporaryDirectory folder(memory_folder());
  const Directory directory = expect(Directory::open(folder.path(), Directory::For::writing));
  auto writer = expect(SegmentWriter::begin(expect(directory.create(1)), head_of(1)));
  TestStream stream(1);
  for (int slice = 0; slice < 1000; ++slice) stream.add(writer, 16'384);  // 32 MiB
  expect(writer.seal());
  const FileDescriptor file(::open((folder / Directory::file_name(1)).c_str(), O_RDWR));
  const std::uint64_t size = file_size(file.get()), offset = 100;
  // The footer has 20 bytes, and 8 follow it.
  REQUIRE(::pwrite(file.get(), &offset, sizeof offset, static_cast<off_t>(size - 28)) == 8);
  FileWindow window;
  window.reset(file.get(), size);
  const test::Scarcity scarcity(8 << 20);
  CHECK(read_summary(window).error() == "the checksum of the summary is wrong");
}

TEST_CASE("a file of which all streams are removed is deleted, also if the disk is full") {
  const ThreeStreams files(true);
  expect(SegmentWriter::begin(expect(files.directory.create(2)), head_of(2)));
  test::FailingDisk disk;
  disk.write = ENOSPC;
  const Cleared cleared = expect(rewrite_without(files.directory, 1, {1, 2, 3}));
  CHECK(cleared.changed);
  CHECK(cleared.saved_bytes > 0);
  CHECK(files.directory.list() == std::vector<FileNumber>{2});
}

TEST_CASE("a rewrite reserves no space") {
  const ThreeStreams files(true);
  test::FailingDisk disk;
  disk.reserve = ENOSPC;
  CHECK(expect(rewrite_without(files.directory, 1, {1})).changed);
}
