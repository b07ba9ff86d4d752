// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "transport/connection.h"

namespace millrace {

// Messages one behind the other in one string that is used again and again. Confined to one thread.
class MessageBatch {
 public:
  struct Message {
    Connection::Kind kind;
    bool is_result;
    std::string_view bytes;  // until the batch changes
  };

  // The next message is appended to this, then committed. Returns its length.
  std::string& bytes() { return bytes_; }
  std::size_t commit(Connection::Kind kind, bool is_result) {
    const std::size_t length = bytes_.size() - (ends_.empty() ? 0 : ends_.back().end);
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

  // Keeps its memory, but not for ever what one burst needed.
  void clear() {
    if (bytes_.capacity() > std::max(kept_, 4 * bytes_.size())) std::string().swap(bytes_);
    bytes_.clear();
    ends_.clear();
  }

 private:
  static constexpr std::size_t kept_ = 4 * 1024;

  struct End {
    std::size_t end;
    Connection::Kind kind;
    bool is_result;
  };

  std::string bytes_;
  std::vector<End> ends_;
};

}  // namespace millrace
