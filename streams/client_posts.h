// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/message_room.h"
#include "base/ring.h"
#include "chunker/ready_row.h"
#include "streams/stream_settings.h"

namespace millrace {

// The messages of a stream's client to the worker. A message waits with its event before the
// chunker, then for the next row, and then in this row until it is done. Confined to one thread.
class ClientPosts {
 public:
  // A message has arrived: JSON. Its event waits before the chunker.
  void add(std::string text) {
    unfed_bytes_ += size_of(text);
    unfed_.push_back(std::move(text));
  }
  // The message whose event is next.
  std::string_view next() const { return unfed_.front(); }
  // Its event was added to the chunker, at this position.
  void feed(std::uint64_t position, bool set) {
    next_bytes_ += size_of(unfed_.front());
    unfed_bytes_ -= size_of(unfed_.front());
    next_row_.push_back({.position = position, .text = unfed_.pop_front(), .set = set});
  }

  // The messages that the row cut now carries, until it is done; usually null.
  const StreamPosts* carry(std::uint64_t seq) {
    if (next_row_.empty()) return nullptr;
    in_rows_bytes_ += next_bytes_;
    auto posts = std::make_unique<StreamPosts>(std::exchange(next_row_, {}));
    in_rows_.push_back(Carried{seq, std::exchange(next_bytes_, 0), std::move(posts)});
    return in_rows_.back().posts.get();
  }
  void done(std::uint64_t seq) {
    if (!in_rows_.empty() && in_rows_.front().seq == seq)
      in_rows_bytes_ -= in_rows_.pop_front().bytes;
  }

  // Drops the messages whose events wait.
  void drop_unfed() {
    unfed_.clear();
    unfed_bytes_ = 0;
  }

  // True if a message of this length may be added. `longest` is the longest one.
  bool has_room(std::size_t length, std::size_t longest) const {
    const std::size_t bytes = length + message_overhead;
    return waiting() + bytes <= waiting_posts * longest &&
           this->bytes() + bytes <= kept_posts * longest;
  }

  // The memory of all messages; of those that wait for the client's next row; and of the others,
  // which rows free when they are done.
  std::size_t bytes() const { return waiting() + in_rows_bytes_; }
  std::size_t bytes_for_next_row() const { return next_bytes_; }
  std::size_t bytes_with_rows() const { return unfed_bytes_ + in_rows_bytes_; }
  std::size_t unfed() const { return unfed_.size(); }  // messages whose events wait

  std::string options;  // the current ones of the stream; empty: its client has changed none

 private:
  std::size_t waiting() const { return unfed_bytes_ + next_bytes_; }  // in no row
  static std::size_t size_of(std::string_view text) { return text.size() + message_overhead; }

  struct Carried {
    std::uint64_t seq = 0;
    std::size_t bytes = 0;
    std::unique_ptr<StreamPosts> posts{};
  };

  Ring<std::string> unfed_;
  StreamPosts next_row_;
  Ring<Carried> in_rows_;
  std::size_t unfed_bytes_ = 0, next_bytes_ = 0, in_rows_bytes_ = 0;
};

}  // namespace millrace
