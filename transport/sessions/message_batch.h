// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "transport/websocket/connection.h"

namespace millrace {

// A sequence of messages in one string, whose memory is reused. Confined to one thread.
class MessageBatch {
 public:
  struct Message {
    Connection::Kind kind;
    std::size_t results;     // sent with it
    std::string_view bytes;  // valid until the batch changes
  };

  // Append the next message to bytes(), then call commit(), which returns its length in bytes. The
  // next bytes() drops a message that was not committed, because an allocation failed.
  std::string& bytes() {
    bytes_.resize(end());
    return bytes_;
  }
  std::size_t commit(Connection::Kind kind, bool is_result) {
    const std::size_t length = bytes_.size() - end();
    ends_.push_back({bytes_.size(), kind, is_result ? 1u : 0u});
    return length;
  }
  // One more result is sent with the last message. Requires: not empty().
  void add_result() { ++ends_.back().results; }

  std::size_t size() const { return ends_.size(); }
  bool empty() const { return ends_.empty(); }

  Message operator[](std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1].end;
    return {ends_[i].kind, ends_[i].results,
            std::string_view(bytes_).substr(begin, ends_[i].end - begin)};
  }

  // Drops all but the first `messages`, whose bytes stay valid. Returns the number of bytes
  // dropped.
  std::size_t truncate(std::size_t messages) {
    const std::size_t before = end();
    ends_.resize(messages);
    return before - end();
  }

  // Marks all messages as no results.
  void unmark_results() {
    for (End& message : ends_) message.results = 0;
  }

  // Drops all messages. Keeps memory for the next ones, but frees that of an unusually large batch.
  void clear() {
    const bool spacious = bytes_.capacity() > std::max(min_kept_, 4 * bytes_.size());
    if (spacious || bytes_.capacity() > max_kept_) std::string().swap(bytes_);
    bytes_.clear();
    ends_.clear();
  }

 private:
  static constexpr std::size_t min_kept_ = 4 * 1024;
  static constexpr std::size_t max_kept_ = 64 * 1024;

  std::size_t end() const { return ends_.empty() ? 0 : ends_.back().end; }

  struct End {
    std::size_t end;
    Connection::Kind kind;
    std::uint32_t results;
  };

  std::string bytes_;
  std::vector<End> ends_;
};

}  // namespace millrace
