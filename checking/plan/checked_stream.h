// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/event.h"
#include "base/frame_type.h"
#include "checking/plan/draws.h"
#include "chunker/ready_row.h"
#include "chunker/row.h"
#include "chunker/spec.h"

namespace millrace::checking {

// A row of a checked stream. `frame`: frames before its body, without those that gaps skipped.
struct CheckedRow {
  Row row;
  std::uint64_t frame = 0;
  bool begins_run = false;    // the state must be fresh before it
  StreamPosts messages = {};  // the client's messages that the row carries
};

// The frames of a stream.
struct StreamFrames {
  std::string name;
  std::string options;  // the client's JSON object, or empty
  std::vector<std::byte> bytes;
};

// A stream of a check: its frames, and the rows that it is cut into.
class CheckedStream {
 public:
  // An event and the number of frames before it.
  using Events = std::vector<std::pair<std::uint64_t, Event>>;

  // Cuts the frames by the rule. `events` are those between `open` and the end, in order; the
  // stream ends with `end`, or with `abort` if that is the last of them. The rows with the numbers
  // `moves` get RESET(worker_lost), as if their stream had lost its worker before them. Requires:
  // `frames` has whole frames, and at least one.
  CheckedStream(StreamFrames frames, const FrameType& type, const ChunkRule& rule,
                const Events& events, const std::vector<std::uint64_t>& moves);

  const std::string& name() const { return frames_.name; }
  // The client's options before the messages of a row: those at the open, with the changes since.
  std::string options_before(std::uint32_t row) const;
  void set_options(std::string options) { frames_.options = std::move(options); }
  // The row carries one more message, after those that it has.
  void post(std::uint32_t row, StreamPost message);
  const std::vector<CheckedRow>& rows() const { return rows_; }
  // The frames of a row's window.
  Bytes window(const CheckedRow& row) const;
  // The numbers of the rows that begin a run. The first one is 0.
  std::vector<std::uint32_t> runs() const;

 private:
  void mark_runs();

  StreamFrames frames_;
  std::size_t frame_bytes_;
  std::vector<CheckedRow> rows_;
};

// Draws flushes, resets and gaps, and sometimes an abort, for a stream of this length. `one_run`:
// flushes alone.
CheckedStream::Events draw_events(std::uint64_t frames, bool one_run, Draws& draws);

// The streams of a check: cuts each at drawn events, and lets it lose its worker at drawn rows. The
// first one has neither, and each fourth one has one run.
std::vector<CheckedStream> cut_streams(std::vector<StreamFrames> streams, const FrameType& type,
                                       const ChunkRule& rule, Draws& draws);

}  // namespace millrace::checking
