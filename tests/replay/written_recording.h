// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "chunker/chunker.h"
#include "chunker/rule_json.h"
#include "recording/format/row_digest.h"
#include "tests/recording/recording_files.h"

namespace millrace {

// A stream of s16 mono frames for a recording in a test.
struct WrittenStream {
  recording::StreamMeta meta{};
  ChunkRule rule{};
  std::vector<Event> events{};
  std::map<std::uint64_t, std::string> answers{};  // JSON, by the row
  std::vector<std::byte> frames{};                 // of all events

  WrittenStream(std::uint64_t number, const ChunkRule& its_rule, std::vector<Event> its_events)
      : meta(recording::meta_of(number)), rule(its_rule), events(std::move(its_events)) {
    meta.rule = to_json(rule);
    meta.batches->widths = {rule.width()};
    for (const Event& event : events)
      if (event.kind == Event::Kind::frames)
        for (std::uint64_t i = 0; i < 2 * event.count; ++i)
          frames.push_back(static_cast<std::byte>(frames.size() * 7 + number * 13));
  }

  // The rows that the events give.
  std::vector<Row> rows() const {
    std::vector<Row> all;
    Chunker chunker(rule.chunker_spec());
    for (const Event& event : events) {
      chunker.add(event);
      while (const auto row = chunker.next()) all.push_back(*row);
    }
    return all;
  }
};

// Writes the streams to a directory of one sealed recording file, in slices of `together` events,
// the streams in turns. Answers are in the last slice of their stream.
inline void write_streams(const std::string& path, std::span<const WrittenStream> streams,
                          std::size_t together = 3) {
  using namespace recording;
  const auto directory = expect(Directory::open(path, Directory::For::writing));
  auto writer = expect(FileWriter::begin(expect(directory.create(1)), head_of(1)));
  std::vector<Slice> next(streams.size());
  std::vector<std::size_t> offset(streams.size());
  for (std::uint32_t number = 0;; ++number) {
    bool any = false;
    for (std::size_t i = 0; i < streams.size(); ++i) {
      const WrittenStream& stream = streams[i];
      Slice& slice = next[i];
      slice.stream = stream.meta.number;
      const std::size_t first = static_cast<std::size_t>(slice.first_event);
      if (first >= stream.events.size()) continue;
      any = true;
      std::vector<RecordedEvent> events;
      std::size_t bytes = 0;
      if (first == 0 && stream.events[0].kind == Event::Kind::open)
        slice.begin = stream.events[0].count;
      std::uint64_t position = slice.begin;
      std::uint32_t size = slice.size;
      for (std::size_t j = first; j < std::min(first + together, stream.events.size()); ++j) {
        const Event& event = stream.events[j];
        events.push_back({event, from_wire(stream.meta.opened_steady)});
        if (event.kind == Event::Kind::frames) bytes += 2 * event.count;
        if (event.kind == Event::Kind::frames || event.kind == Event::Kind::gap)
          position += event.count;
        if (event.kind == Event::Kind::size) size = static_cast<std::uint32_t>(event.count);
      }
      slice.events = events;
      std::vector<RecordedAnswer> answers;
      if (first + events.size() == stream.events.size()) {
        RowDigest digest;
        for (const Row& row : stream.rows()) digest.add(row);
        for (const auto& [seq, data] : stream.answers)
          answers.push_back({.seq = seq, .kind = Answer::Kind::json, .data = data});
        slice.answers = answers;
        slice.closing =
            StreamTotals{.rows = digest.rows(), .digest = digest.value(), .complete = true};
      }
      const Bytes part = Bytes(stream.frames).subspan(offset[i], bytes);
      writer.add(stream.meta, number, stream.meta.opened_wall, slice, {&part, 1});
      offset[i] += bytes;
      slice = {.stream = stream.meta.number,
               .first_event = slice.first_event + events.size(),
               .begin = position,
               .size = size};
    }
    if (!any) break;
  }
  expect(writer.seal());
}

}  // namespace millrace
