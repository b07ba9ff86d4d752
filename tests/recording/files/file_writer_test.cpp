// SPDX-License-Identifier: Apache-2.0
#include "recording/files/file_writer.h"

#include <fcntl.h>

#include <catch2/catch.hpp>
#include <set>

#include "recording/files/file.h"
#include "recording/files/recording_file.h"
#include "tests/recording/recording_files.h"
#include "tests/support/allocations.h"
#include "tests/support/temporary_directory.h"

using namespace millrace;
using namespace millrace::recording;

namespace {

// A directory with the file 1, which is being written.
struct Recording {
  TemporaryDirectory temporary;
  Directory directory = expect(Directory::open(temporary.path(), Directory::For::writing));
  FileWriter writer = expect(FileWriter::begin(expect(directory.create(1)), head_of(1)));

  void commit() {
    expect(writer.write());
    expect(writer.sync());
  }
  RecordingFile open() { return expect(RecordingFile::open(directory, 1)); }
  std::uint64_t size() { return file_size(expect(directory.open_to_read(1)).get()); }
};

std::size_t messages_of(RecordingFile& file) {
  std::size_t messages = 0;
  for (std::size_t chunk = 0; chunk < file.chunks().size(); ++chunk)
    messages += expect(file.messages(chunk)).size();
  return messages;
}

}  // namespace

TEST_CASE("a sealed file has all slices, and its parts") {
  Recording recording;
  TestStream a(5), b(3);
  a.add(recording.writer, 100);
  b.add(recording.writer, 50);
  recording.commit();
  a.add(recording.writer, 10, true);
  expect(recording.writer.seal());

  RecordingFile file = recording.open();
  CHECK(file.sealed());
  CHECK(file.head().file == 1);
  CHECK(file.verify());
  CHECK(file.channels().at(1) == a.meta());
  CHECK(file.channels().at(2) == b.meta());
  CHECK(messages_of(file) == 3);
  CHECK(file.parts() ==
        std::vector<StreamPart>{{.stream = 3, .slices = 1, .end = 50, .frames = 50, .channel = 2},
                                {.stream = 5,
                                 .slices = 2,
                                 .end = 110,
                                 .frames = 110,
                                 .channel = 1,
                                 .closed = true,
                                 .complete = true}});
}

TEST_CASE("committed slices can be read before the file is sealed") {
  Recording recording;
  TestStream stream(1);
  CHECK(messages_of(*std::make_unique<RecordingFile>(recording.open())) == 0);
  stream.add(recording.writer, 100);
  recording.commit();
  stream.add(recording.writer, 100);
  RecordingFile file = recording.open();
  CHECK_FALSE(file.sealed());
  CHECK(messages_of(file) == 1);
}

TEST_CASE("a file without slices can be sealed") {
  Recording recording;
  expect(recording.writer.seal());
  RecordingFile file = recording.open();
  CHECK(file.sealed());
  CHECK(file.verify());
  CHECK(file.parts().empty());
}

TEST_CASE("messages are at multiples of 8 bytes of the file") {
  Recording recording;
  std::vector<TestStream> streams;
  for (std::uint64_t number = 1; number <= 40; ++number)
    streams.emplace_back(number * number * number);
  std::size_t frames = 1;
  for (int round = 0; round < 20; ++round) {
    for (TestStream& stream : streams) stream.add(recording.writer, frames = frames * 7 % 1009);
    recording.commit();
  }
  expect(recording.writer.seal());
  RecordingFile file = recording.open();
  for (std::size_t chunk = 0; chunk < file.chunks().size(); ++chunk)
    for (const SliceMessage& message : expect(file.messages(chunk))) {
      CHECK(reinterpret_cast<std::uintptr_t>(message.bytes.data()) % 8 == 0);
      CHECK(message.bytes.size() % 8 == 1);
    }
  CHECK(messages_of(file) == 800);
  CHECK(file.verify());
}

TEST_CASE("a chunk has at most 64 KiB of records, or one message") {
  Recording recording;
  TestStream small(1), large(2);
  for (int i = 0; i < 100; ++i) small.add(recording.writer, 1'000);
  large.add(recording.writer, 100'000);
  small.add(recording.writer, 1'000);
  expect(recording.writer.seal());
  RecordingFile file = recording.open();
  std::set<std::size_t> sizes;
  for (std::size_t chunk = 0; chunk < file.chunks().size(); ++chunk) {
    const std::size_t messages = expect(file.messages(chunk)).size();
    sizes.insert(messages);
    CHECK((messages == 1 || file.chunks()[chunk].bytes <= FileWriter::chunk_bytes + 49));
  }
  CHECK(*sizes.begin() == 1);
  CHECK(*sizes.rbegin() >= 28);
}

TEST_CASE("the writer states its size, and gives back reserved space") {
  Recording recording;
  TestStream stream(1);
  for (int i = 0; i < 50; ++i) stream.add(recording.writer, 5'000);
  const std::uint64_t expected = recording.writer.size();
  CHECK(recording.writer.uncommitted() < expected);
  recording.commit();
  CHECK(recording.writer.uncommitted() == 0);
  CHECK(recording.writer.size() == recording.size());
  CHECK(recording.size() <= expected);
  CHECK(recording.size() + 1'000 > expected);
  expect(recording.writer.seal());
  struct stat facts {};
  REQUIRE(::fstat(expect(recording.directory.open_to_read(1)).get(), &facts) == 0);
  CHECK(512 * facts.st_blocks < facts.st_size + (1 << 20));
}

TEST_CASE("a stream has a channel once it has a slice") {
  Recording recording;
  TestStream stream(7);
  CHECK_FALSE(recording.writer.has_channel(7));
  stream.add(recording.writer, 1);
  CHECK(recording.writer.has_channel(7));
  CHECK(recording.writer.channels() == 1);
}

TEST_CASE("an encoded slice is written as it is, with or without its last byte") {
  Recording recording;
  const StreamMeta meta = meta_of(9);
  const std::vector<RecordedEvent> events{{{.kind = Event::Kind::open}, {}}};
  const Slice slice{.stream = 9, .events = events};
  SliceEncoder encoder;
  const Bytes encoded = encoder.encode(slice, {});
  std::vector<std::byte> message(encoded.begin(), encoded.end());
  recording.writer.copy(meta, {.channel = 1, .number = 0, .bytes = message}, slice);
  message.push_back(std::byte{0});
  recording.writer.copy(meta, {.channel = 1, .number = 1, .bytes = message}, slice);
  recording.writer.add_loss(9);
  expect(recording.writer.seal());
  RecordingFile file = recording.open();
  for (const SliceMessage& read : expect(file.messages(0)))
    CHECK(std::ranges::equal(read.bytes, message));
  CHECK(file.parts().front().lost);
}

TEST_CASE("in steady state a slice needs no allocation") {
  Recording recording;
  TestStream stream(1);
  const std::vector<RecordedEvent> events(1, {{.kind = Event::Kind::frames, .count = 1'600}, {}});
  const std::vector<std::byte> frames(3'200);
  const Bytes part = frames;
  std::uint32_t number = 0;
  const auto add = [&] {
    recording.writer.add(stream.meta(), number, 0,
                         {.stream = 1, .first_event = ++number, .begin = 1, .events = events},
                         {&part, 1});
  };
  const auto round = [&] {
    for (int i = 0; i < 100; ++i) add();
    expect(recording.writer.write());
  };
  for (int i = 0; i < 33; ++i) round();
  const std::size_t before = test::allocations();
  for (int i = 0; i < 20; ++i) round();
  CHECK(test::allocations() - before <= 1);  // the index of the chunks grows
}

TEST_CASE("an error of the disk is the result of the write") {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  REQUIRE(full >= 0);
  const auto writer = FileWriter::begin(FileDescriptor(full), head_of(1));
  REQUIRE_FALSE(writer.has_value());
  CHECK((writer.error() == std::errc::no_space_on_device ||
         writer.error() == std::errc::no_such_device));
}
