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

const std::string stays =
    "0000000001.mcap: cannot be read whole, and stays as it is: Input/output error";

// The first 4 chunks of the file have 16 KiB each, of streams 1 to 4. The disk cannot read the
// second one from its middle on.
struct UnreadableChunk {
  explicit UnreadableChunk(bool sealed = true) {
    auto writer = expect(FileWriter::begin(expect(directory.create(1)), head_of(1)));
    for (std::uint64_t number = 1; number <= 4; ++number) {
      TestStream(number).add(writer, 8192, true);
      expect(writer.write());
    }
    if (sealed) expect(writer.seal());
    chunks = open().chunks();
    bad = chunks[1];
    disk.unreadable = {bad.offset + 8192, bad.offset + 8192 + 100};
  }
  RecordingFile open() const { return expect(RecordingFile::open(directory, 1, Reading::copied)); }

  TemporaryDirectory folder{memory_folder()};
  Directory directory = expect(Directory::open(folder.path(), Directory::For::writing));
  std::vector<ChunkPlace> chunks;
  ChunkPlace bad;
  test::FailingDisk disk;
};

}  // namespace

TEST_CASE("what the disk cannot read is a damaged chunk, and the others are read") {
  const UnreadableChunk files;
  RecordingFile file = files.open();
  CHECK_FALSE(file.verify());
  REQUIRE(file.damages().size() == 1);
  CHECK(file.damages()[0].why ==
        "chunk 1 cannot be read: Input/output error: slices of streams 2 are lost");
  CHECK(read_all(file).size() == 3);
}

TEST_CASE("a file with a chunk that the disk cannot read now stays until it can be read") {
  UnreadableChunk files;
  CHECK(rewrite_without(files.directory, 1, {1}).error() == stays);
  CHECK(rewrite_without(files.directory, 1, {1, 3, 4}).error() == stays);
  files.disk.unreadable.reset();
  CHECK(expect(rewrite_without(files.directory, 1, {1})).damages.empty());
  RecordingFile file = files.open();
  CHECK(read_all(file).size() == 3);
  CHECK(file.verify());
}

TEST_CASE("what the disk cannot read of a removed stream does not delay its removal") {
  UnreadableChunk files;
  CHECK(expect(rewrite_without(files.directory, 1, {2})).damages.empty());
  files.disk.unreadable.reset();
  RecordingFile file = files.open();
  CHECK(read_all(file).size() == 3);
  CHECK(file.verify());
}

TEST_CASE("an unsealed file that the disk cannot read whole stays until it can be read") {
  for (const std::size_t chunk : {1, 3}) {
    UnreadableChunk files(false);
    const ChunkPlace bad = files.chunks[chunk];
    files.disk.unreadable = {bad.offset + 8192, bad.offset + 8192 + 100};
    const std::uint64_t size = files.open().size();
    CHECK(recover(files.directory, 1).error() == stays);
    CHECK(files.open().size() == size);
    files.disk.unreadable.reset();
    CHECK(expect(recover(files.directory, 1)).lost_bytes == 0);
    RecordingFile file = files.open();
    CHECK(file.verify());
    CHECK(read_all(file).size() == 4);
  }
}

TEST_CASE("a sealed file whose end the disk cannot read is not sealed again") {
  UnreadableChunk files;
  const std::uint64_t size = files.open().size();
  files.disk.unreadable = {size - 10, size};
  CHECK(recover(files.directory, 1).error() == stays);
  files.disk.unreadable.reset();
  CHECK(files.open().sealed());
}

TEST_CASE("a time that cannot be set is a notice") {
  for (const bool sealed : {false, true}) {
    UnreadableChunk files(sealed);
    files.disk.unreadable.reset();
    files.disk.set_time = EPERM;
    const Lines notices{
        "0000000001.mcap: counts as written now: its time cannot be set: Operation not permitted"};
    if (!sealed) CHECK(expect(recover(files.directory, 1)).notices == notices);
    CHECK(expect(rewrite_without(files.directory, 1, {1})).notices == notices);
    CHECK(files.open().channels().size() == 3);
  }
}

TEST_CASE("a summary that the disk cannot read is damage, and the chunks are read") {
  UnreadableChunk files;
  RecordingFile whole = files.open();
  files.disk.unreadable = {whole.size() - 10, whole.size()};
  RecordingFile file = files.open();
  CHECK_FALSE(file.sealed());
  CHECK(file.damages().at(0).why == "the end of the file cannot be read: Input/output error");
  CHECK(read_all(file).size() == 4);
}

TEST_CASE("a file whose first records the disk cannot read is an error that says so") {
  UnreadableChunk files;
  files.disk.unreadable = {0, 100};
  CHECK(RecordingFile::open(files.directory, 1).error() == "0000000001.mcap: Input/output error");
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
  auto writer = expect(FileWriter::begin(expect(directory.create(1)), head_of(1)));
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
  expect(FileWriter::begin(expect(files.directory.create(2)), head_of(2)));
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
