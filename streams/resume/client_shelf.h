// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "base/answer.h"
#include "base/error_code.h"
#include "base/result_head.h"
#include "base/ring.h"
#include "streams/client_output.h"

namespace millrace {

// The messages of one stream that its client has not acknowledged, in their order. Each has a
// number, counted over the life of the stream. Confined to one thread.
class ClientShelf {
 public:
  struct Result {
    ResultHead head;
    Answer answer;
    ResumePoint point;
  };
  struct Message {
    MessageHead head;
    Answer message;
  };
  struct Flushed {
    std::uint64_t mark = 0;
    std::uint64_t seq = 0;
  };
  struct Rejected {
    ErrorCode code{};
    std::string message;
    std::uint64_t frames = 0;
  };
  struct Error {
    ErrorCode code{};
    std::string message;
  };
  struct Closed {
    std::uint64_t frames = 0;
    std::uint64_t chunks = 0;
    bool drained = false;
  };
  using Kept = std::variant<Result, Message, Flushed, Rejected, Error, Closed>;

  // `first`: the number of the first message.
  explicit ClientShelf(std::uint64_t first) : first_(first) {}

  void add(Kept message);
  // Gives the client the message with number `n`, which is in [first(), next()).
  void give(std::uint64_t n, ClientOutput& client) const;
  // The client has the messages before number `n`, which is at most next().
  void acknowledge(std::uint64_t n);
  void clear() { acknowledge(next()); }

  std::uint64_t first() const { return first_; }                    // number of the oldest one
  std::uint64_t next() const { return first_ + messages_.size(); }  // number of the next one
  // The results, and messages of workers, that are kept.
  std::size_t results() const { return results_; }
  std::size_t bytes() const { return bytes_; }
  bool empty() const { return messages_.empty(); }

 private:
  std::uint64_t first_;
  Ring<Kept> messages_;
  std::size_t results_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace millrace
