// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/ids.h"
#include "base/instants.h"
#include "base/trigger.h"

namespace millrace {

// The batch in which a row was done: the values that its client may see.
struct RowInBatch {
  BatchId batch{};
  Slot slot{};
  std::uint32_t rows = 0;  // rows with frames in the batch
  Trigger trigger = Trigger::full;
};

// The times of a row in each stage, for a client that requested them with `explain=1`.
struct Explanation {
  RowInBatch in_batch;
  Instants at;  // up to `done`
};

// The position of a result in its stream, in frames of the pipeline. `explanation` is valid during
// the call that has the head.
struct ResultHead {
  std::uint64_t seq = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  double rate = 16000;     // frames per second
  std::uint8_t flags = 0;  // bit i is the i-th of START RESET SEGMENT GAP LAST END ABORT
  const Explanation* explanation = nullptr;  // null: not requested
};

// The first message to a client: the stream is open. The views are valid during the call.
struct StreamReady {
  std::string_view stream;      // its name
  std::string_view pipeline;    // the name of its pipeline
  std::size_t frame_bytes = 0;  // bytes of one frame of the client; 0: each message is one, Opus
  std::uint64_t frames = 0;     // number of the client's frames that have arrived
  // For a client that resumes:
  std::uint64_t commands = 0;    // number of the client's commands that have arrived
  std::uint64_t keep = 0;        // the most frames that the client has to keep, to send them again
  std::string_view resume = {};  // the token that continues the stream, a secret; or empty
  // The client has shown a token. True: the stream was kept; false: it was opened anew.
  std::optional<bool> resumed = {};
};

// A place between two rows from which a stream can be continued without a loss. Everything before
// it is done, and its results were given to the client.
struct ResumePoint {
  std::uint64_t seq = 0;       // the number of the next row
  std::uint64_t frames = 0;    // the number of the client's frames before the one that has `begin`
  std::uint64_t commands = 0;  // the number of the client's commands with an effect before it
  std::uint64_t begin = 0;     // the position of the first frame that rows from here on need
  std::uint64_t skip = 0;      // the frames of the pipeline before it in that frame of the client
  bool operator==(const ResumePoint&) const = default;
};

// The number of a message to a client that resumes: all messages in the order of the stream are
// counted, from 0.
struct MessageNumber {
  std::uint64_t n = 0;
  std::optional<ResumePoint> point = {};  // only a result has one: all before it is done
  bool operator==(const MessageNumber&) const = default;
};

// The end of a segment: its LAST row, which was cut.
struct SegmentEnd {
  std::uint64_t seq = 0;                // number of the row
  std::uint64_t position = 0;           // the number of frames of the pipeline that complete it
  double rate = 16000;                  // frames per second
  std::optional<std::uint64_t> mark{};  // mark of the flush that ended the segment
  bool by_endpoint = false;             // an endpoint ended the segment
};

// The place of a message of a worker among those to its client.
struct MessageHead {
  std::uint64_t number = 0;  // counts the messages of the stream, from 0
  std::uint64_t seq = 0;     // number of the newest row that the worker had
};

}  // namespace millrace
