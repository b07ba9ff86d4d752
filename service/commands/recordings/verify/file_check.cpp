// SPDX-License-Identifier: Apache-2.0
#include "service/commands/recordings/verify/file_check.h"

#include <algorithm>

#include "recording/format/checksums.h"
#include "recording/format/mcap.h"

namespace millrace::recordings {

namespace mcap = recording::mcap;
using recording::Damage;
using recording::SegmentFile;
using recording::Slice;
using recording::SliceMessage;
using recording::StreamPart;

namespace {

constexpr std::size_t footer_bytes = mcap::record_head + 8 + 8 + 4;
constexpr std::size_t data_end_bytes = mcap::record_head + 4;

// Where the sections of a sealed file lie, with their checksums.
struct Sections {
  std::uint64_t data_end = 0;       // of the bytes with the checksum data_sum
  std::uint64_t summary_begin = 0;  // of the bytes with the checksum summary_sum
  std::uint64_t summary_end = 0;
  std::uint32_t data_sum = 0, summary_sum = 0;
};

std::optional<Sections> sections_of(Bytes file) {
  if (file.size() < footer_bytes + mcap::magic.size()) return std::nullopt;
  const std::size_t footer_begin = file.size() - mcap::magic.size() - footer_bytes;
  Sections sections;
  mcap::Cursor end(file.subspan(footer_begin));
  const auto footer = end.record();
  if (!footer || footer->opcode != mcap::Opcode::footer) return std::nullopt;
  mcap::Cursor fields(footer->content);
  sections.summary_begin = fields.u64();
  fields.u64();  // where the summary offsets begin
  sections.summary_sum = fields.u32();
  sections.summary_end = footer_begin + footer_bytes - 4;
  if (!fields.ok() || sections.summary_begin < data_end_bytes ||
      sections.summary_begin > footer_begin)
    return std::nullopt;
  sections.data_end = sections.summary_begin - data_end_bytes;
  mcap::Cursor before(file.subspan(static_cast<std::size_t>(sections.data_end), data_end_bytes));
  const auto data_end = before.record();
  if (!data_end || data_end->opcode != mcap::Opcode::data_end) return std::nullopt;
  sections.data_sum = mcap::Cursor(data_end->content).u32();
  return sections;
}

}  // namespace

FileCheck::FileCheck(SegmentFile& file, SliceOrder& order, Problems& problems)
    : file_(file), order_(order), problems_(problems), number_(file.head().file) {}

void FileCheck::run(const std::function<void(std::uint64_t)>& read) {
  for (std::size_t chunk = 0; chunk < file_.chunks().size(); ++chunk) {
    check_chunk(chunk);
    read(file_.chunks()[chunk].offset + file_.chunks()[chunk].bytes);
  }
  for (const Damage& damage : file_.damages())
    problems_.add(number_, "at byte " + std::to_string(damage.offset) + ", " +
                               counted(damage.bytes, "byte") + ": " + damage.why);
  damaged_ = damaged_ || !file_.damages().empty();
  if (!file_.sealed()) return;
  check_parts();
  check_sums();
}

void FileCheck::check_chunk(std::size_t chunk) {
  const recording::ChunkPlace& place = file_.chunks()[chunk];
  // The bytes are still in the processor's cache when the slices are checked.
  if (file_.sealed() && place.offset >= summed_) {
    const Bytes bytes = file_.bytes();
    const auto end = std::min<std::uint64_t>(place.offset + place.bytes, bytes.size());
    data_sum_ = recording::crc32(bytes.subspan(summed_, end - summed_), data_sum_);
    summed_ = end;
  }
  const auto messages = file_.messages(chunk);
  if (!messages) return;  // it is one of damages()
  for (const SliceMessage& message : *messages) check_slice(message);
}

void FileCheck::check_slice(const SliceMessage& message) {
  const auto damaged = [&](const std::string& what) {
    problems_.add(number_, "channel " + std::to_string(message.channel) + ", slice " +
                               std::to_string(message.number) + ": " + what);
    damaged_ = true;
  };
  const auto channel = file_.channels().find(message.channel);
  if (channel == file_.channels().end()) return damaged("the file does not have the channel");
  const auto slice = decoder_.slice(message.bytes, channel->second.frames.bytes());
  if (!slice) return damaged("the slice is invalid");
  if (slice->stream != channel->second.number)
    return damaged("the slice is of stream " + std::to_string(slice->stream) +
                   ", the channel of stream " + std::to_string(channel->second.number));
  order_.add(number_, file_.head().run, message.number, *slice);
  count(message.channel, message.number, *slice);
}

void FileCheck::count(std::uint16_t channel, std::uint32_t number, const Slice& slice) {
  const auto [place, first] = parts_.try_emplace(slice.stream);
  StreamPart& part = place->second;
  if (first) {
    part.stream = slice.stream;
    part.first_slice = number;
    part.first_event = slice.first_event;
    part.begin = slice.begin;
    part.channel = channel;
  }
  ++part.slices;
  for (const recording::TimedEvent& timed : slice.events)
    if (timed.event.kind == Event::Kind::frames) part.frames += timed.event.count;
  part.end = order_.position(slice.stream);
  part.closed = slice.closing.has_value();
  part.complete = slice.closing && slice.closing->complete;
  part.lost = part.lost || slice.lost.has_value();
}

// The summary may know more of a loss than the chunks: after damage was cut out.
void FileCheck::check_parts() {
  for (const StreamPart& listed : file_.parts()) {
    const auto found = parts_.find(listed.stream);
    StreamPart expected = found == parts_.end() ? StreamPart{} : found->second;
    expected.lost = expected.lost || listed.lost;
    if (found == parts_.end() || expected != listed)
      problems_.add(number_, listed.stream, found == parts_.end() ? listed.begin : expected.end,
                    "the file has " + counted(expected.slices, "slice") + ", up to position " +
                        std::to_string(expected.end) + "; its summary lists " +
                        counted(listed.slices, "slice") + ", up to position " +
                        std::to_string(listed.end));
    if (found != parts_.end()) parts_.erase(found);
  }
  for (const auto& [stream, part] : parts_)
    problems_.add(number_, stream, part.begin, "the summary of the file does not list the stream");
}

void FileCheck::check_sums() {
  const Bytes bytes = file_.bytes();
  const auto sections = sections_of(bytes);
  if (!sections) return problems_.add(number_, "the end of the file is damaged");
  const Bytes summary =
      bytes.subspan(sections->summary_begin, sections->summary_end - sections->summary_begin);
  if (recording::crc32(summary) != sections->summary_sum)
    problems_.add(number_, "the checksum of the summary is wrong");
  const bool overlap = summed_ > sections->data_end;
  if (!overlap)
    data_sum_ = recording::crc32(bytes.subspan(summed_, sections->data_end - summed_), data_sum_);
  // A damaged chunk changes this checksum too, and is named already.
  if ((overlap || data_sum_ != sections->data_sum) && !damaged_)
    problems_.add(number_, "the checksum of the data section is wrong");
}

}  // namespace millrace::recordings
