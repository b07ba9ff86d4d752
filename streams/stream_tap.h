// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "base/answer.h"
#include "base/bytes.h"
#include "base/event.h"
#include "base/ids.h"
#include "base/time.h"
#include "chunker/row.h"
#include "streams/stats/stats.h"

namespace millrace {

// Sees everything that determines the rows of one stream: each event as its chunker receives it,
// with its frames. Also sees the rows, for a check, the answers to them and the messages of
// workers. Nothing before the chunker (waiting, shedding, conversion) and nothing after it (slots,
// batches) is visible.
//
// Owned by its stream and called on the stream's thread. A call must not block, must not throw, and
// must not call the stream.
class StreamTap {
 public:
  virtual ~StreamTap() = default;

  // An event enters the chunker. It was read at `arrived`. `frames` are the values of a `frames`
  // event, in the type of the pipeline, or the text of an event that has one, valid during the
  // call; for other events it is empty.
  virtual void event(const Event& event, Time arrived, const std::array<Bytes, 2>& frames) = 0;
  // The chunker has cut a row.
  virtual void row(const Row& row) = 0;
  // A worker has answered the row with the number `seq` in a batch. Answers follow in the order of
  // the rows, the last ones after the last event.
  virtual void answered(std::uint64_t seq, BatchId batch, const Answer& answer) = 0;
  // A worker has sent the message `number` of the stream, when the row `seq` was its newest.
  virtual void message(std::uint64_t number, std::uint64_t seq, const Answer& message) = 0;
  // The stream is over: the last call. `ended`: its last row was cut, after `end` or `abort`;
  // otherwise its lanes gave it up, perhaps when some rows before an `end` were not cut yet.
  virtual void closed(StreamClosing why, bool ended) = 0;
};

}  // namespace millrace
