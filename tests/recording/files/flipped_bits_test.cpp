// SPDX-License-Identifier: Apache-2.0
// Each bit of a small file is flipped.
#include <catch2/catch.hpp>
#include <set>

#include "recording/files/recovery.h"
#include "tests/recording/files/planned_file.h"
#include "tests/support/sampled.h"

using namespace millrace;
using namespace millrace::recording;

namespace {

// The keys of messages, by chunk.
std::vector<std::set<Messages::key_type>> keys_by_chunk(const PlannedFile& planned) {
  std::vector<std::set<Messages::key_type>> keys;
  Messages before;
  for (const Messages& after : planned.after_chunk) {
    auto& chunk = keys.emplace_back();
    for (const auto& [key, message] : after)
      if (!before.contains(key)) chunk.insert(key);
    before = after;
  }
  return keys;
}

// Calls `check` with each bit flipped, one after the other. Stops at the first failure.
template <class Check>
void for_each_bit(const PlannedFile& planned, Check check) {
  const FileDescriptor file(::open(planned.path().c_str(), O_WRONLY));
  for (std::size_t at = 0; at < planned.bytes.size(); at += test::byte_step()) {
    for (int bit = 0; bit < 8; ++bit) {
      const char flipped = static_cast<char>(planned.bytes[at] ^ 1 << bit);
      REQUIRE(::pwrite(file.get(), &flipped, 1, static_cast<off_t>(at)) == 1);
      INFO("byte " << at << ", bit " << bit);
      check();
    }
    REQUIRE(::pwrite(file.get(), &planned.bytes[at], 1, static_cast<off_t>(at)) == 1);
  }
}

// Number of chunks of which not all messages were read.
std::size_t lost_chunks(const std::vector<std::set<Messages::key_type>>& chunks,
                        const Messages& read) {
  std::size_t lost = 0;
  for (const auto& keys : chunks) {
    std::size_t found = 0;
    for (const auto& key : keys) found += read.contains(key);
    if (found < keys.size()) ++lost;
  }
  return lost;
}

}  // namespace

TEST_CASE("a flipped bit of a sealed file costs its chunk, and is found") {
  const PlannedFile planned(3, 2, true);
  const auto chunks = keys_by_chunk(planned);
  for_each_bit(planned, [&] {
    RecordingFile file = planned.open();
    const Messages read = read_all(file);
    if (!is_part(read, planned.all)) FAIL("a value was returned that was not recorded");
    const std::size_t lost = lost_chunks(chunks, read);
    if (lost > 1) FAIL("more than one chunk is lost");
    if (lost == 1 && file.damages().empty()) FAIL("the loss has no name");
    if (file.verify()) FAIL("verify() has not found the damage");
    if (file.damages().front().why.empty()) FAIL("the damage has no reason");
  });
}

TEST_CASE("the damage of a chunk in a sealed file names its streams") {
  const PlannedFile planned(5, 3, true);
  RecordingFile file = planned.open();
  auto bytes = planned.bytes;
  bytes[file.chunks()[2].offset + 100] ^= 1;
  planned.set(bytes);
  RecordingFile damaged = planned.open();
  const auto messages = damaged.messages(2);
  REQUIRE_FALSE(messages.has_value());
  CHECK(messages.error().why == "chunk 2 has a wrong checksum: slices of streams 2, 3, 4 are lost");
  CHECK(messages.error().file == 1);
  CHECK(messages.error().offset == file.chunks()[2].offset);
  CHECK_FALSE(damaged.messages(2).has_value());
  CHECK(damaged.damages().size() == 1);
}

// The first chunks have the channels: the loss of a channel costs all slices of the stream in an
// unsealed file.
TEST_CASE("a flipped bit of an unsealed file costs its chunk, and slices of its new channels") {
  const PlannedFile planned(3, 2);
  const auto chunks = keys_by_chunk(planned);
  for_each_bit(planned, [&] {
    RecordingFile file = planned.open();
    const Messages read = read_all(file);
    if (!is_part(read, planned.all)) FAIL("a value was returned that was not recorded");
    std::size_t whole = 0;
    for (std::size_t i = 0; i < file.chunks().size(); ++i) whole += file.messages(i).has_value();
    if (whole < chunks.size() - 1) FAIL("more than one chunk is lost");
    if (whole < chunks.size() && file.damages().empty() && file.torn_bytes() == 0)
      FAIL("the loss has no name");
  });
}

// One bit of each byte: a recovery takes much longer than a read.
TEST_CASE("recovery of a file with a flipped bit keeps the other chunks, and names the loss") {
  const PlannedFile planned(3, 2);
  for (std::size_t at = 0; at < planned.bytes.size(); at += test::byte_step()) {
    INFO("byte " << at);
    std::vector<char> flipped = planned.bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ 1 << at % 8);
    planned.set(flipped);
    RecordingFile damaged = planned.open();
    const Messages before = read_all(damaged);

    const auto recovered = recover(planned.directory, 1);
    if (!recovered) FAIL(recovered.error());
    RecordingFile file = planned.open();
    if (!file.sealed() || !file.verify()) FAIL("the recovered file is not good");
    keep_file(planned.directory, 1);
    const Messages read = read_all(file);
    if (read != before) FAIL("recovery has lost slices, or found others");
    const bool lost = read.size() < planned.all.size();
    if (lost && recovered->streams.empty()) FAIL("the loss has no name");
    if (lost && recovered->cut_bytes + recovered->lost_bytes == 0) FAIL("the loss has no size");
  }
}
