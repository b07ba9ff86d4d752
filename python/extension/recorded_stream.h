// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "recording/reader/recordings.h"
#include "recording/reader/stream_frames.h"
#include "recording/reader/stream_parts.h"

namespace millrace::python {

// A recorded stream, of one or several parts. Reads its events when they are needed first, and
// reads on after Recordings::refresh(). A part that is recorded later is not one of this object.
// Requires: the GIL, in all calls; so one thread at a time reads.
class StreamObject {
 public:
  StreamObject(std::shared_ptr<recording::Recordings> recordings, recording::StreamParts parts)
      : recordings_(std::move(recordings)),
        parts_(std::move(parts)),
        facts_(recording::summary_of(parts_)),
        changes_(recordings_->changes()) {}

  // The latest facts. If a part was deleted, its facts are those before.
  const recording::RecordedStream& facts();
  const recording::StreamParts& parts();

  // The same as in the facts, but false once the stream was read and a part of it was missing.
  bool whole();
  // The recorded frames; of a stream of several parts those that frames() has.
  std::uint64_t length();

  // A tuple for each part: number, epoch, begin, rows, frames.
  nanobind::list listed_parts();
  nanobind::list events();
  nanobind::list missing();
  // The answers of workers (RecordedAnswer), or their messages (RecordedMessage).
  template <class One>
  nanobind::list recorded();
  // The frames [begin, end) as an array that cannot be written. `self`: this object in Python,
  // which an array in place keeps alive.
  static nanobind::object frames(nanobind::handle_t<StreamObject> self, std::uint64_t begin,
                                 std::optional<std::uint64_t> end);

 private:
  recording::StreamFrames& read();

  std::shared_ptr<recording::Recordings> recordings_;  // outlives frames_
  recording::StreamParts parts_;
  recording::RecordedStream facts_;
  std::uint64_t changes_;
  std::unique_ptr<recording::StreamFrames> frames_;
  std::uint64_t frames_changes_ = 0;
};

void add_recorded_stream(nanobind::module_& module);

}  // namespace millrace::python
