// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/message_room.h"
#include "base/time.h"
#include "chunker/row.h"

namespace millrace {

// The most rows of one stream that are ready and in no batch.
inline constexpr std::size_t max_ready_rows = 8;

// A message of a client to the worker.
struct StreamPost {
  std::uint64_t position = 0;  // the position of its stream when it arrived
  std::string text;            // JSON
  bool set = false;            // an object with new values of the stream's options
  bool operator==(const StreamPost&) const = default;
};
using StreamPosts = std::vector<StreamPost>;

inline std::size_t bytes_of(const StreamPosts& messages) {
  std::size_t bytes = 0;
  for (const StreamPost& message : messages) bytes += message.text.size() + message_overhead;
  return bytes;
}

// A row that was cut and waits for a batch. Its frames and its messages stay in the stream, at the
// same address, until the row is done.
struct ReadyRow {
  Row row;
  std::array<Bytes, 2> window;  // the window's frames; the second part is usually empty
  Time arrived;                 // the last frame of its window, or the event that cut it, was read
  Time ready;                   // it was cut
  Duration lost{};              // time in batches of workers that were lost
  bool notify_batched = true;   // send RowBatched to its stream when it is in a batch
  bool handed = false;          // it has been in a batch
  bool suspect = false;  // a worker was lost while this row was in its oldest unfinished batch
  const StreamPosts* posts = nullptr;  // those that came after the row before it; usually none
};

}  // namespace millrace
