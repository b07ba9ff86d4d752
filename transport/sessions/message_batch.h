// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "transport/websocket/connection.h"

namespace millrace {

// Messages one behind the other in one string that is used again and again. Confined to one thread.
class MessageBatch {
 public:
  struct Message {
    Connection::Kind kind;
    bool is_result;
    std::string_view bytes;  // until the batch changes
  };

  // The next message is appended to this, then committed. A message that was begun and not
  // committed, because an allocation failed, is dropped. commit() returns the message's length.
  std::string& bytes() {
    bytes_.resize(end());
    return bytes_;
  }
  std::size_t commit(Connection::Kind kind, bool is_result) {
    const std::size_t length = bytes_.size() - end();
    ends_.push_back({bytes_.size(), kind, is_result});
    return length;
  }

  std::size_t size() const { return ends_.size(); }
  bool empty() const { return ends_.empty(); }

  Message operator[](std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1].end;
    return {ends_[i].kind, ends_[i].is_result,
            std::string_view(bytes_).substr(begin, ends_[i].end - begin)};
  }

  // Drops all but the first `messages`, of which the memory stays. Returns the bytes dropped.
  std::size_t truncate(std::size_t messages) {
    const std::size_t before = end();
    ends_.resize(messages);
    return before - end();
  }

  // From now on no message is a result.
  void disown_results() {
    for (End& message : ends_) message.is_result = false;
  }

  // Keeps its memory for the next messages, but not what a burst of them needed.
  void clear() {
    const bool spacious = bytes_.capacity() > std::max(kept_, 4 * bytes_.size());
    if (spacious || bytes_.capacity() > most_kept_) std::string().swap(bytes_);
    bytes_.clear();
    ends_.clear();
  }

 private:
  static constexpr std::size_t kept_ = 4 * 1024;
  static constexpr std::size_t most_kept_ = 64 * 1024;

  std::size_t end() const { return ends_.empty() ? 0 : ends_.back().end; }

  struct End {
    std::size_t end;
    Connection::Kind kind;
    bool is_result;
  };

  std::string bytes_;
  std::vector<End> ends_;
};

}  // namespace millrace
