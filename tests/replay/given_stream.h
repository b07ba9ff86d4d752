// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "recording/reader/joined_reader.h"
#include "tests/recording/recording_files.h"
#include "tests/support/temporary_directory.h"

namespace millrace {

// A recorded stream of frames of two bytes, given by a test. Each event is a slice of its own.
class GivenStream {
 public:
  // Appends an event. Frames have the next values.
  void add(const Event& event, Time at = {}, std::string_view text = {}) {
    const recording::RecordedEvent recorded{.event = event, .at = at, .text = text};
    const std::size_t begin = values_.size();
    if (event.kind == Event::Kind::frames)
      for (std::uint64_t i = 0; i < 2 * event.count; ++i)
        values_.push_back(static_cast<std::byte>(seed_ = seed_ * 31 + 7));
    if (event.kind == Event::Kind::open) next_.begin = event.count;
    write({.events = {&recorded, 1}}, Bytes(values_).subspan(begin));
    ++next_.first_event;
    if (event.kind == Event::Kind::frames || event.kind == Event::Kind::gap)
      next_.begin += event.count;
    if (event.kind == Event::Kind::size) next_.size = static_cast<std::uint32_t>(event.count);
  }
  void add(const recording::RecordedAnswer& answer) { write({.answers = {&answer, 1}}); }
  void add(const recording::StreamTotals& totals) { write({.closing = totals}); }
  // Answers before the next item are missing.
  void lose_answers() { ++number_; }

  // All frames, one after the other.
  const std::vector<std::byte>& values() const { return values_; }

  // Call it once, after all else.
  recording::JoinedReader& reader() {
    recording::expect(writer_.seal());
    recordings_ = recording::expect(recording::Recordings::open(folder_.path()));
    return reader_.emplace(*recordings_, recording::StreamParts{recordings_->find(1).value()});
  }

 private:
  void write(recording::Slice slice, Bytes frames = {}) {
    slice.stream = 1;
    slice.first_event = next_.first_event;
    slice.begin = next_.begin;
    slice.size = next_.size;
    writer_.add(recording::meta_of(1), number_++, 0, slice, {&frames, 1});
  }

  TemporaryDirectory folder_{memory_folder()};
  recording::Directory directory_ = recording::expect(
      recording::Directory::open(folder_.path(), recording::Directory::For::writing));
  recording::FileWriter writer_ = recording::expect(
      recording::FileWriter::begin(recording::expect(directory_.create(1)), recording::head_of(1)));
  recording::Slice next_;  // where it begins
  std::uint32_t number_ = 0;
  std::vector<std::byte> values_;
  std::uint32_t seed_ = 1;
  std::unique_ptr<recording::Recordings> recordings_;
  std::optional<recording::JoinedReader> reader_;
};

}  // namespace millrace
