// SPDX-License-Identifier: Apache-2.0
// A file that ends at any byte: after a crash, or while it is being written.
#include <catch2/catch.hpp>
#include <map>

#include "recording/files/recovery.h"
#include "tests/recording/files/planned_file.h"
#include "tests/support/sampled.h"

using namespace millrace;
using namespace millrace::recording;

namespace {

// The file without its last bytes.
std::span<const char> cut(const PlannedFile& planned, std::size_t size) {
  return std::span(planned.bytes).first(size);
}

// Where each chunk of the whole file ends.
std::vector<std::uint64_t> chunk_ends(const PlannedFile& planned) {
  std::vector<std::uint64_t> ends;
  RecordingFile file = planned.open();
  for (const ChunkPlace& chunk : file.chunks()) ends.push_back(chunk.offset + chunk.bytes);
  return ends;
}

// The messages of the whole chunks in the first `size` bytes.
Messages expected(const PlannedFile& planned, const std::vector<std::uint64_t>& ends,
                  std::uint64_t size) {
  Messages messages;
  for (std::size_t i = 0; i < ends.size(); ++i)
    if (ends[i] <= size) messages = planned.after_chunk[i];
  return messages;
}

// "17 from position 48000", for each stream without an end.
std::vector<std::string> open_streams(RecordingFile& file) {
  std::vector<std::string> streams;
  for (const StreamPart& part : file.parts())
    if (!part.closed)
      streams.push_back(std::to_string(part.stream) + " from position " + std::to_string(part.end));
  return streams;
}

// Cuts the file at each byte from the end of chunk `first` to its own end, reads and recovers it.
void check_each_cut(const PlannedFile& planned, std::size_t first) {
  const std::vector<std::uint64_t> ends = chunk_ends(planned);
  for (std::size_t size = ends[first]; size < planned.bytes.size(); size += test::byte_step()) {
    INFO("cut at byte " << size);
    planned.set(cut(planned, size));
    const Messages wanted = expected(planned, ends, size);
    RecordingFile file = planned.open();
    if (file.sealed() || read_all(file) != wanted) FAIL("the slices are not those before the cut");
    const std::vector<std::string> streams = open_streams(file);

    const auto recovered = recover(planned.directory, 1);
    if (!recovered) FAIL(recovered.error());
    if (recovered->cut_bytes != file.torn_bytes()) FAIL("not all cut bytes are counted");
    if (recovered->lost_bytes > 0) FAIL("bytes before the cut are lost");
    if (recovered->streams != streams) FAIL("a stream that may have lost slices has no name");
    RecordingFile repaired = planned.open();
    if (!repaired.sealed() || !repaired.verify()) FAIL("the repaired file is not good");
    keep_file(planned.directory, 1);
    if (read_all(repaired) != wanted || open_streams(repaired) != streams)
      FAIL("recovery has changed the slices");
    // The reader had the file open while its end was cut.
    if (read_all(file) != wanted) FAIL("an open reader has lost slices");
  }
}

}  // namespace

TEST_CASE("an unsealed file that is cut at any byte of its last two chunks is recovered") {
  check_each_cut(PlannedFile(5), 2);
}

TEST_CASE("a sealed file that is cut at any byte of its last two chunks or later is recovered") {
  check_each_cut(PlannedFile(4, 2, true), 1);
}

TEST_CASE("a file that ends in its first records is recovered as an empty file") {
  const PlannedFile planned(1, 1);
  for (std::size_t size = 0; size < 500; size += test::byte_step()) {
    INFO("cut at byte " << size);
    planned.set(cut(planned, size));
    RecordingFile file = planned.open();
    if (!file.chunks().empty() || !file.damages().empty()) FAIL("an unfinished file is damaged");
    const auto recovered = recover(planned.directory, 1);
    if (!recovered) FAIL(recovered.error());
    if (recovered->cut_bytes + recovered->lost_bytes != size) FAIL("not all bytes are counted");
    RecordingFile repaired = planned.open();
    if (!repaired.sealed() || !repaired.verify()) FAIL("the repaired file is not good");
    keep_file(planned.directory, 1);
  }
}

TEST_CASE("a reader in the tail returns each chunk once it is whole, and no damage") {
  const PlannedFile planned(5, 3, true);
  const std::vector<std::uint64_t> ends = chunk_ends(planned);
  planned.set(cut(planned, 0));
  RecordingFile tail = planned.open();
  for (std::size_t size = 1; size <= planned.bytes.size(); ++size) {
    INFO("the file has " << size << " bytes");
    const FileDescriptor file(::open(planned.path().c_str(), O_WRONLY));
    REQUIRE(::pwrite(file.get(), &planned.bytes[size - 1], 1, static_cast<off_t>(size - 1)) == 1);
    const bool more = std::ranges::count(ends, size) > 0;
    if (tail.refresh() != more) FAIL("not exactly the whole chunks are found");
    if (!tail.damages().empty()) FAIL("an unfinished commit is not damage");
    if (tail.sealed() != (size == planned.bytes.size())) FAIL("the file is sealed at its end");
  }
  CHECK(read_all(tail) == planned.all);
  RecordingFile sealed = planned.open();
  CHECK(tail.parts() == sealed.parts());
  CHECK(tail.channels() == sealed.channels());
  CHECK(tail.head().run == sealed.head().run);
}

TEST_CASE("the parts of an unsealed file are those of the same file when it is sealed") {
  const PlannedFile open(6, 4), sealed(6, 4, true);
  RecordingFile unsealed_file = open.open(), sealed_file = sealed.open();
  CHECK_FALSE(unsealed_file.sealed());
  CHECK(sealed_file.sealed());
  CHECK(unsealed_file.parts() == sealed_file.parts());
}

TEST_CASE("messages stay valid while the file grows beyond its mapping") {
  const PlannedFile planned(3);
  RecordingFile file = planned.open();
  const auto messages = expect(file.messages(0));
  const std::vector<std::byte> before(messages[0].bytes.begin(), messages[0].bytes.end());
  // A chunk far behind the others: the space between them is damage.
  const std::uint64_t far = 200 << 20;
  const ChunkPlace last = file.chunks().back();
  const FileDescriptor descriptor(::open(planned.path().c_str(), O_RDWR));
  const std::size_t marker = 9 + 36 + 7;
  const std::vector<char> moved(planned.bytes.begin() + static_cast<long>(last.offset - marker),
                                planned.bytes.end());
  REQUIRE(::pwrite(descriptor.get(), moved.data(), moved.size(), far) ==
          static_cast<ssize_t>(moved.size()));
  file.refresh();
  CHECK(std::ranges::equal(messages[0].bytes, before));
  CHECK(file.chunks().size() == 3);  // a marker with a number that was used is a copy
}
