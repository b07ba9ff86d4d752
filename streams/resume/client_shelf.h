// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <variant>

#include "base/answer.h"
#include "base/error_code.h"
#include "base/result_head.h"
#include "base/ring.h"
#include "streams/client_output.h"

namespace millrace {

// The messages of one stream that its client has not acknowledged, in their order. Each has a
// number, counted over the life of the stream. A connection is given them one by one. They lie in
// blocks of memory, which are freed when their messages are acknowledged. Confined to one thread.
class ClientShelf {
 public:
  struct Result {
    ResultHead head;
    ResumePoint point;
  };
  struct Message {
    MessageHead head;
  };
  struct Flushed {
    std::uint64_t mark = 0;
    std::uint64_t seq = 0;
  };
  struct Rejected {
    ErrorCode code{};
    std::uint64_t frames = 0;
  };
  struct Error {
    ErrorCode code{};
  };
  struct Closed {
    std::uint64_t frames = 0;
    std::uint64_t chunks = 0;
    bool drained = false;
  };
  // A message without its text.
  using Kept = std::variant<Result, Message, Flushed, Rejected, Error, Closed>;

  // `first`: the number of the first message.
  explicit ClientShelf(std::uint64_t first) : first_(first), given_(first) {}

  // `text`: the answer, the message of the worker, or the text of the error. Has no effect if it
  // throws std::bad_alloc.
  void add(const Kept& message, const Answer& text = {});
  // Gives the client the next message. Requires: !has_given_all().
  void give_next(ClientOutput& client);
  // The same for the message that was added last, with the same values, if it is the next one.
  void give_last(const Kept& message, const Answer& text, ClientOutput& client) {
    give(next() - 1, message, text, client);
    given_ = next();
  }
  // The message to give next is number `n`, which is in [first(), next()].
  void seek(std::uint64_t n);
  // The client has the messages before number `n`, which is at most next().
  void acknowledge(std::uint64_t n);

  std::uint64_t first() const { return first_; }          // number of the oldest one
  std::uint64_t next() const { return first_ + count_; }  // number of the next one
  std::uint64_t given() const { return given_; }          // number of the one to give next
  bool has_given_all() const { return given_ == next(); }
  // The results, and messages of workers, that are kept.
  std::size_t results() const { return results_; }
  // The memory of the messages.
  std::size_t bytes() const { return bytes_; }
  static const std::size_t overhead;  // bytes of a message beside its text
  bool empty() const { return count_ == 0; }

 private:
  // The begin of each message. The Kept follows, its text, and then its explanation.
  struct Head {
    std::size_t size = 0;  // bytes of the whole message
    Answer::Kind kind{};   // that of the text
    bool endpoint = false;
    bool is_result = false;
  };
  static_assert(std::is_trivially_copyable_v<Head> && std::is_trivially_copyable_v<Kept>);

  static void give(std::uint64_t n, const Kept& message, const Answer& text, ClientOutput& client);
  void seek_next(std::size_t bytes);

  std::uint64_t first_;
  std::size_t count_ = 0;
  std::size_t results_ = 0;
  std::size_t bytes_ = 0;
  std::size_t begin_ = 0;  // where the oldest message begins in the first block
  std::uint64_t given_;
  std::size_t given_block_ = 0, given_at_ = 0;  // where this message begins, if it is kept
  Ring<std::string> blocks_;
};

inline constexpr std::size_t ClientShelf::overhead = sizeof(Head) + sizeof(Kept);

}  // namespace millrace
