// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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
// blocks of memory, and a block is freed when all its messages are acknowledged. An acknowledgement
// reads no message, because their memory is in no cache by then. Confined to one thread.
class ClientShelf {
 public:
  struct Result {
    ResultHead head;
    ResumePoint point;

    void give(ClientOutput& client, const Answer& text) const { client.result(head, text); }
  };
  struct Message {
    MessageHead head;

    void give(ClientOutput& client, const Answer& text) const { client.message(head, text); }
  };
  struct Flushed {
    std::uint64_t mark = 0;
    std::uint64_t seq = 0;

    void give(ClientOutput& client, const Answer&) const { client.flushed(mark, seq); }
  };
  struct Rejected {
    ErrorCode code{};
    std::uint64_t frames = 0;

    void give(ClientOutput& client, const Answer& text) const {
      client.rejected(code, text.data, frames);
    }
  };
  struct Error {
    ErrorCode code{};

    void give(ClientOutput& client, const Answer& text) const { client.error(code, text.data); }
  };
  struct Closed {
    std::uint64_t frames = 0;
    std::uint64_t chunks = 0;
    bool drained = false;

    void give(ClientOutput& client, const Answer&) const { client.closed(frames, chunks, drained); }
  };
  // A message without its text.
  using Kept = std::variant<Result, Message, Flushed, Rejected, Error, Closed>;

  // `first`: the number of the first message.
  explicit ClientShelf(std::uint64_t first)
      : newest_{.first = first}, first_(first), next_(first), given_{.n = first} {}

  // `text`: the answer, the message of the worker, or the text of the error. Has no effect if it
  // throws std::bad_alloc. Requires: it is shorter than 4 GiB.
  void add(const Kept& message, const Answer& text = {});
  // Fetches the memory of the next message into the cache.
  void expect_message() const {
    constexpr std::size_t line = 64;  // bytes
    const char* const to = newest_.bytes.get() + newest_.used;
    for (std::size_t i = 0; i < 3; ++i) __builtin_prefetch(to + line * i, 1);
  }
  // Gives the client the next message. Requires: !has_given_all().
  void give_next(ClientOutput& client);
  // The same for the message that was added last, with the same values, if it is the next one.
  void give_last(const auto& message, const Answer& text, ClientOutput& client) {
    give(next_ - 1, message, text, client);
    given_.n = next_;
  }
  // The message to give next is number `n`, which is in [first(), next()].
  void seek(std::uint64_t n);
  // The client has the messages before number `n`, which is at most next().
  void acknowledge(std::uint64_t n);

  std::uint64_t first() const { return first_; }    // number of the oldest one
  std::uint64_t next() const { return next_; }      // number of the next one
  std::uint64_t given() const { return given_.n; }  // number of the one to give next
  bool has_given_all() const { return given_.n == next_; }
  // The results, and messages of workers, that are kept. Looks at each message.
  std::size_t results() const;
  // The memory of the messages.
  std::size_t bytes() const { return bytes_; }
  static const std::size_t overhead;  // bytes of a message beside its text
  bool empty() const { return first_ == next_; }

 private:
  // The begin of each message. The Kept follows, its text, and then its explanation.
  struct Head {
    std::uint32_t size = 0;  // bytes of the whole message
    Answer::Kind kind{};     // that of the text
    bool endpoint = false;
  };
  static_assert(std::is_trivially_copyable_v<Head> && std::is_trivially_copyable_v<Kept>);

  struct Block {
    std::unique_ptr<char[]> bytes{};
    std::uint32_t capacity = 0, used = 0;  // bytes
    std::uint64_t first = 0;               // number of its first message
  };

  // Where a message lies.
  struct Place {
    std::uint64_t n = 0;              // its number
    std::uint32_t block = 0, at = 0;  // where it begins, if it is kept
  };

  void add_block(std::size_t bytes);
  const Block& block(std::size_t i) const { return i < full_.size() ? full_[i] : newest_; }
  const char* at(const Place& place) const { return &block(place.block).bytes[place.at]; }
  Place find(std::uint64_t n) const;
  void step(Place& place) const;
  static void give(std::uint64_t n, const auto& message, const Answer& text, ClientOutput& client) {
    MessageNumber number{.n = n};
    if constexpr (requires { message.point; }) number.point = message.point;
    client.number(number);
    message.give(client, text);
  }

  Block newest_;  // may be without memory while the shelf is empty
  std::uint64_t first_;
  std::uint64_t next_;
  Place given_;
  std::size_t bytes_ = 0;
  Ring<Block> full_;  // the blocks before the newest one
};

inline constexpr std::size_t ClientShelf::overhead = sizeof(Head) + sizeof(Kept);

}  // namespace millrace
