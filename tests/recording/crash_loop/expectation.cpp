// SPDX-License-Identifier: Apache-2.0
#include "tests/recording/crash_loop/expectation.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "recording/files/recording_file.h"
#include "recording/files/recovery.h"
#include "recording/format/part_table.h"

namespace millrace::recording {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(FileNumber number, const std::string& what) {
  throw std::runtime_error(Directory::file_name(number) + ": " + what);
}

struct ReadMessage {
  std::uint64_t stream = 0;
  std::uint32_t number = 0;
  std::vector<std::byte> bytes{};
  bool operator==(const ReadMessage&) const = default;
};

struct ReadFile {
  std::vector<ReadMessage> messages{};  // in the order of the file
  bool sealed = false, good = false;    // good: verify() has found no damage
  std::string damage{};                 // the first damage
  bool named = false;                   // there is damage, or a torn tail
  std::uint64_t torn = 0;
  std::vector<StreamPart> parts{};
};

ReadFile read(const Directory& directory, FileNumber number) {
  auto file = RecordingFile::open(directory, number);
  if (!file) throw std::runtime_error(file.error());
  ReadFile read{.sealed = file->sealed(), .torn = file->torn_bytes()};
  for (std::size_t chunk = 0; chunk < file->chunks().size(); ++chunk) {
    const auto messages = file->messages(chunk);
    if (!messages) continue;
    for (const SliceMessage& message : *messages) {
      const auto meta = file->channels().find(message.channel);
      if (meta != file->channels().end())
        read.messages.push_back(
            {meta->second.number, message.number, {message.bytes.begin(), message.bytes.end()}});
    }
  }
  read.parts = file->parts();
  read.good = file->verify();
  if (!read.good) read.damage = ": " + file->damages().front().why;
  read.named = !file->damages().empty() || read.torn > 0;
  return read;
}

}  // namespace

void Expectation::add(std::uint64_t seed, const Progress& progress) {
  if (progress.first_stream == 0) return;
  if (progress.first_stream <= last_stream_)
    throw std::runtime_error("the number of a stream is used twice");
  SlicePlan plan = plan_of(seed, progress.first_stream);
  for (const Progress::File& file : progress.files) {
    if (file.number == 0) break;
    ExpectedFile& expected = files_[file.number];
    for (std::uint64_t slice = file.first; slice < file.added; ++slice)
      expected.slices.push_back(plan.next());
    expected.committed = file.committed - file.first;
    expected.removing = file.removing;
    expected.removed = file.removed;
    committed_ += expected.committed;
    for (std::size_t i = 0; i < expected.committed; ++i)
      last_stream_ = std::max(last_stream_, expected.slices[i].meta.number);
  }
}

std::size_t Expectation::check(FileNumber number) {
  const auto found = files_.find(number);
  if (found == files_.end()) fail(number, "no process has written this file");
  const ExpectedFile& expected = found->second;
  const ReadFile file = read(directory_, number);
  if (file.sealed && !file.good) fail(number, "a sealed file is damaged" + file.damage);
  const bool without = std::ranges::none_of(file.messages, [&](const ReadMessage& message) {
    return message.stream == expected.removing;
  });
  if (expected.removed && !without) fail(number, "a removed stream is there");
  auto at = file.messages.begin();
  bool gap = false;
  for (std::size_t i = 0; i < expected.slices.size(); ++i) {
    const PlannedSlice& slice = expected.slices[i];
    if (slice.meta.number == expected.removing && without) continue;
    const bool is_next =
        at != file.messages.end() && at->stream == slice.meta.number && at->number == slice.number;
    if (!is_next) {
      if (i < expected.committed) fail(number, "a committed slice is missing");
      gap = true;
      continue;
    }
    if (at->bytes != slice.message()) fail(number, "a slice has other bytes");
    if (gap && !file.sealed && !file.named) fail(number, "missing slices are not named");
    ++at;
  }
  if (at != file.messages.end()) fail(number, "a slice is there that was not written");
  PartTable parts;
  for (const ReadMessage& message : file.messages) {
    const auto slice = std::ranges::find_if(expected.slices, [&](const PlannedSlice& planned) {
      return planned.meta.number == message.stream && planned.number == message.number;
    });
    parts.add(0, message.number, slice->slice());
  }
  std::vector<StreamPart> wanted = parts.list(), listed = file.parts;
  for (StreamPart& part : listed) part.channel = 0;
  if (!file.sealed && file.named)
    for (StreamPart& part : listed) part.lost = false;
  if (!file.sealed && file.named)
    for (StreamPart& part : wanted) part.lost = false;
  if (listed != wanted) fail(number, "the parts are not those of the slices");
  return file.messages.size();
}

void Expectation::check_all() {
  for (const FileNumber number : directory_.list()) check(number);
}

Expectation::Repair Expectation::recover_and_check(FileNumber number) {
  const ReadFile before = read(directory_, number);
  const auto begun = Clock::now();
  const auto recovered = recover(directory_, number);
  const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  if (!recovered) throw std::runtime_error(recovered.error());
  const ReadFile after = read(directory_, number);
  if (!after.sealed || !after.good) fail(number, "the recovered file is not good" + after.damage);
  if (after.messages != before.messages) fail(number, "recovery has changed the slices");
  // A tail that no interrupted write leaves may have been committed: then it counts as lost.
  const std::uint64_t counted = recovered->cut_bytes + recovered->lost_bytes;
  if (recovered->lost_bytes == 0 ? counted != before.torn : counted < before.torn)
    fail(number, "not all bytes that were cut are counted");
  for (const StreamPart& part : before.parts) {
    const auto names = [&](const std::string& line) {
      return line.starts_with(std::to_string(part.stream) + " from position ");
    };
    if (!before.sealed && !part.closed && std::ranges::none_of(recovered->streams, names))
      fail(number, "a stream without an end is not named");
  }
  check(number);
  return {recovered->cut_bytes, recovered->lost_bytes, seconds};
}

}  // namespace millrace::recording
