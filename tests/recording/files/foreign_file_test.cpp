// SPDX-License-Identifier: Apache-2.0
// Files of other programs and versions, and frames that look like records.
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstring>

#include "recording/files/recovery.h"
#include "recording/format/checksums.h"
#include "recording/format/file_head.h"
#include "recording/format/mcap.h"
#include "tests/recording/files/planned_file.h"

using namespace millrace;
using namespace millrace::recording;

namespace {

using Content = std::vector<std::byte>;

// The error of opening a file with this content, and that of recovering it, if they are equal.
std::string error_of(std::string_view content) {
  const PlannedFile planned(1);
  planned.set(content);
  const auto file = RecordingFile::open(planned.directory, 1);
  const auto recovered = recover(planned.directory, 1);
  if (file || recovered || file.error() != recovered.error()) return "";
  CHECK(planned.content() == std::vector<char>(content.begin(), content.end()));
  return file.error();
}

std::string_view text_of(const Content& content) {
  return {reinterpret_cast<const char*>(content.data()), content.size()};
}

// The first records of another program's file.
Content mcap_file(std::string_view profile) {
  Content content;
  mcap::Builder builder(content);
  builder.bytes(std::as_bytes(std::span(mcap::magic)));
  const std::size_t header = builder.begin(mcap::Opcode::header);
  builder.text(profile);
  builder.text("another library");
  builder.end(header);
  return content;
}

// The beginning of a file of version 2.
Content later_file() {
  FileHead head = head_of(1);
  std::map<std::string, std::string> metadata = to_metadata(head);
  metadata.erase("crc");
  metadata["format"] = "2";
  std::uint32_t crc = 0;
  for (const auto& [key, value] : metadata)
    for (const std::string& text : {key, value})
      crc = crc32(std::as_bytes(std::span(text.c_str(), text.size() + 1)), crc);
  char digits[9];
  std::snprintf(digits, sizeof digits, "%08x", crc);
  metadata["crc"] = digits;
  Content content = mcap_file("millrace");
  mcap::Builder builder(content);
  const std::size_t record = builder.begin(mcap::Opcode::metadata);
  builder.text("millrace");
  builder.text_map(metadata);
  builder.end(record);
  return content;
}

// Writes one stream, whose frames are these, and other slices before and after.
void write(const Directory& directory, const FileHead& head, std::span<const char> frames) {
  auto writer = expect(FileWriter::begin(expect(directory.create(head.file)), head));
  TestStream before(1), after(2);
  before.add(writer, 10);
  expect(writer.write());
  std::vector<char> even(frames.begin(), frames.end());
  even.resize(even.size() + even.size() % 2);
  const std::vector<RecordedEvent> events{
      {{.kind = Event::Kind::open}, Time()},
      {{.kind = Event::Kind::frames, .count = even.size() / 2}, Time()}};
  const Bytes bytes = std::as_bytes(std::span(even));
  writer.add(meta_of(17), 0, 0, {.stream = 17, .events = events}, {&bytes, 1});
  expect(writer.write());
  after.add(writer, 10);
  expect(writer.write());
}

}  // namespace

TEST_CASE("a file of another program, profile or version is refused in one line, and not changed") {
  CHECK(error_of("RIFF....WAVEfmt ") == "0000000001.mcap: is not an MCAP file");
  CHECK(error_of(text_of(mcap_file("ros2"))) ==
        "0000000001.mcap: has the profile \"ros2\", not \"millrace\"");
  CHECK(error_of(text_of(mcap_file("\n\x1b[2J"))) ==
        "0000000001.mcap: has another profile than \"millrace\"");
  CHECK(error_of(text_of(later_file())) ==
        "0000000001.mcap: has the format 2, but this version of millrace reads formats up to 1");
}

TEST_CASE("a missing file is an error that names it") {
  const PlannedFile planned(1);
  const auto file = RecordingFile::open(planned.directory, 7);
  REQUIRE_FALSE(file.has_value());
  CHECK(file.error() == "0000000007.mcap: No such file or directory");
}

// Earlier versions wrote a private record behind a Channel record, to align the messages.
TEST_CASE("a file of an earlier version, with padding records in its chunks, is read whole") {
  const PlannedFile planned(1);
  std::filesystem::copy_file(MILLRACE_GOLDEN "/recording_with_padding.mcap", planned.path(),
                             std::filesystem::copy_options::overwrite_existing);
  RecordingFile file = planned.open();
  CHECK(file.sealed());
  CHECK(read_all(file).size() == 2);
  CHECK(file.verify());
}

TEST_CASE("frames that contain whole records of the same file are read as frames") {
  const PlannedFile planned(2);  // with the same random id
  TemporaryDirectory folder(memory_folder());
  const Directory directory = expect(Directory::open(folder.path(), Directory::For::writing));
  write(directory, head_of(1), planned.bytes);
  for (const bool sealed : {false, true}) {
    if (sealed) expect(recover(directory, 1));
    RecordingFile file = expect(RecordingFile::open(directory, 1));
    CHECK(file.sealed() == sealed);
    CHECK(file.chunks().size() == 3);
    CHECK(read_all(file).size() == 3);
    CHECK(file.verify());
  }
}

TEST_CASE("frames that contain records of another file are never found after damage") {
  const PlannedFile planned(3, 3, true);
  TemporaryDirectory folder(memory_folder());
  const Directory directory = expect(Directory::open(folder.path(), Directory::For::writing));
  FileHead head = head_of(1);
  head.id = std::string(32, 'e');
  write(directory, head, planned.bytes);
  RecordingFile whole = expect(RecordingFile::open(directory, 1));
  const ChunkPlace forged = whole.chunks()[1];
  const std::string path = folder / Directory::file_name(1);
  // Each byte of the marker, and of the head of the chunk.
  for (std::uint64_t at = forged.offset - 52; at < forged.offset + 60; ++at) {
    INFO("byte " << at);
    const FileDescriptor descriptor(::open(path.c_str(), O_RDWR));
    char byte = 0;
    REQUIRE(::pread(descriptor.get(), &byte, 1, static_cast<off_t>(at)) == 1);
    const char changed = static_cast<char>(byte ^ 4);
    REQUIRE(::pwrite(descriptor.get(), &changed, 1, static_cast<off_t>(at)) == 1);
    RecordingFile file = expect(RecordingFile::open(directory, 1));
    for (const ChunkPlace& chunk : file.chunks())
      if (chunk.offset > forged.offset && chunk.offset < forged.offset + forged.bytes)
        FAIL("a chunk in frames was returned");
    if (file.chunks().size() < 2) FAIL("more than one chunk is lost");
    REQUIRE(::pwrite(descriptor.get(), &byte, 1, static_cast<off_t>(at)) == 1);
  }
}

TEST_CASE("a forged summary with a right checksum returns nothing that was not recorded") {
  const PlannedFile planned(2, 2, true);
  const std::size_t footer = planned.bytes.size() - 37, crc = planned.bytes.size() - 12;
  std::uint64_t summary = 0;
  std::memcpy(&summary, &planned.bytes[footer + 9], sizeof summary);
  for (std::size_t at = summary; at < crc - 8; ++at) {
    std::vector<char> forged = planned.bytes;
    std::fill_n(forged.begin() + static_cast<long>(at), 8, '\xff');
    const std::uint32_t sum =
        crc32(std::as_bytes(std::span(forged).subspan(summary, crc - summary)));
    std::memcpy(&forged[crc], &sum, sizeof sum);
    planned.set(forged);
    RecordingFile file = planned.open();
    file.verify();
    if (!is_part(read_all(file), planned.all)) FAIL("a value was returned that was not recorded");
  }
}
