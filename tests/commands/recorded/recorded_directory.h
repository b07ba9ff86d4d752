// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch.hpp>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "chunker/chunker.h"
#include "chunker/rule_json.h"
#include "recording/files/directory.h"
#include "recording/files/file_writer.h"
#include "recording/format/row_digest.h"
#include "tests/support/temporary_directory.h"

namespace millrace::recordings {

// A stream that a test records: the value of frame p is p + 1 + `added`, in s16. Writes one slice
// per call of slice(). Confined to one thread.
class TestStream {
 public:
  static ChunkRule rule() { return {.spec = {.size = 4}}; }

  TestStream(std::uint64_t number, std::string name) {
    meta.number = number;
    meta.name = std::move(name);
    meta.pipeline = "asr";
    meta.rule = to_json(rule());
    // 2025-11-24T20:55:21Z, a second later for each stream.
    meta.opened_wall = (1'764'017'721 + static_cast<std::int64_t>(number)) * 1'000'000'000;
    meta.opened_steady = 1'000'000'000;
  }

  TestStream& frames(std::uint64_t count) {
    return event({.kind = Event::Kind::frames, .count = count});
  }
  // A message of the client to the worker: JSON.
  TestStream& text(Event::Kind kind, std::string_view json) {
    return event({.kind = kind, .count = json.size()}, json);
  }
  TestStream& event(const Event& event, std::string_view text = {}) {
    events_.push_back({event, from_wire(meta.opened_steady + 250'000'000), text});
    if (event.kind == Event::Kind::open) {
      begin_ = position_ = event.count;
    } else if (event.kind == Event::Kind::frames) {
      for (std::uint64_t i = 0; i < event.count; ++i)
        values_.push_back(static_cast<std::int16_t>(++position_ + added));
      totals_.frames += event.count;
    } else if (event.kind == Event::Kind::gap) {
      position_ += event.count;
      totals_.lost += event.count;
    }
    totals_.complete = event.kind == Event::Kind::end || event.kind == Event::Kind::abort;
    chunker_.add(event);
    while (const auto row = chunker_.next()) digest_.add(*row);
    return *this;
  }
  // The stream's answer to a row, recorded with the next slice.
  TestStream& answer(std::uint64_t seq, std::string_view json) {
    answers_.push_back({.seq = seq, .batch = BatchId{9}, .kind = Answer::Kind::json, .data = json});
    return *this;
  }

  // Writes the events since the last slice. After the last event also the totals.
  void slice(recording::FileWriter& to) {
    recording::Slice slice{.stream = meta.number,
                           .first_event = first_event_,
                           .begin = begin_,
                           .events = events_,
                           .answers = answers_};
    if (totals_.complete) slice.closing = totals();
    const std::vector<Bytes> frames{std::as_bytes(std::span(values_))};
    to.add(meta, number_++, meta.opened_wall, slice, frames);
    skip();
  }
  // Drops the events since the last slice, without a trace.
  void skip() {
    first_event_ += events_.size();
    begin_ = position_;
    events_.clear();
    values_.clear();
    answers_.clear();
  }

  recording::StreamTotals totals() const {
    recording::StreamTotals totals = totals_;
    totals.rows = digest_.rows();
    totals.digest = digest_.value() ^ wrong_digest;
    return totals;
  }

  recording::StreamMeta meta;
  std::uint64_t added = 0;
  std::uint32_t wrong_digest = 0;  // not 0: the recorded digest is wrong

 private:
  Chunker chunker_{rule().chunker_spec()};
  recording::RowDigest digest_;
  recording::StreamTotals totals_;
  std::vector<recording::RecordedEvent> events_;
  std::vector<recording::RecordedAnswer> answers_;
  std::vector<std::int16_t> values_;
  std::uint64_t position_ = 0, begin_ = 0, first_event_ = 0;
  std::uint32_t number_ = 0;
};

// A directory of recordings in /tmp. Confined to one thread.
class RecordedDirectory {
 public:
  const std::string& path() const { return path_.path(); }
  std::string operator/(const std::string& name) const { return path_ / name; }
  const recording::Directory& directory() const { return directory_; }

  // Begins the next recording file.
  recording::FileWriter file(std::uint64_t first_stream = 1, const std::string& run = "a") {
    recording::FileHead head;
    head.file = ++files_;
    head.run = std::string(32, run.front());
    head.id = std::string(31, '0') + std::to_string(files_ % 10);
    head.first_stream = first_stream;
    auto descriptor = directory_.create(files_);
    REQUIRE(descriptor.has_value());
    auto writer = recording::FileWriter::begin(std::move(*descriptor), head);
    REQUIRE(writer.has_value());
    return std::move(*writer);
  }
  // Until the end of the test, a process is writing the directory.
  void hold_writer_lock() { REQUIRE(directory_.lock_for_writing()); }

  static void commit(recording::FileWriter& file) {
    REQUIRE(file.write());
    REQUIRE(file.sync());
  }

 private:
  TemporaryDirectory path_;
  recording::Directory directory_ =
      std::move(*recording::Directory::open(path_.path(), recording::Directory::For::writing));
  recording::FileNumber files_ = 0;
};

}  // namespace millrace::recordings
