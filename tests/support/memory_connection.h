// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transport/net/wakeup.h"
#include "transport/websocket/connection.h"

namespace millrace {

// A connection whose other end is the test. Confined to one thread.
class MemoryConnection final : public Connection {
 public:
  explicit MemoryConnection(Executor executor) : arrived_(executor), sendable_(executor) {}

  // What the peer does.
  void text(std::string bytes) { arrive({Kind::text, std::move(bytes)}); }
  void binary(std::string bytes) { arrive({Kind::binary, std::move(bytes)}); }
  void end(Ended ended) {
    end_ = ended;
    arrived_.notify();
    sendable_.notify();
  }
  void stop_reading() { reads_ = false; }
  void read_again() {
    reads_ = true;
    sendable_.notify();
  }
  // Having stopped, it reads so many messages more.
  void read(std::size_t messages) {
    readable_ = messages;
    sendable_.notify();
  }

  // What it saw.
  std::vector<std::string> seen;        // messages; "<ping>" for a ping
  Kind last_kind = Kind::text;          // of these
  std::optional<std::uint16_t> closed;  // our close code
  bool aborted = false;
  std::size_t unheard() const { return waiting_.size(); }  // messages that nobody received

  // What the time limits go by.
  Time heard_at = Clock::now();
  std::optional<Time> incomplete_since;
  std::optional<Time> stuck_since;
  std::optional<Time> hung_up;
  bool reset = false;
  std::size_t under_way = 0;
  bool answers_close = true;
  bool send_fails = false;

  std::optional<Received> next() override {
    if (waiting_.empty()) return end_;
    current_ = std::move(waiting_.front());
    waiting_.pop_front();
    return Message{.kind = current_.first,
                   .bytes = std::as_bytes(std::span(current_.second)),
                   .arrived = Clock::now()};
  }
  Task<> readable() override { return arrived_.wait(); }

  void add(Kind kind, std::string_view bytes) override { added_.emplace_back(kind, bytes); }
  Flushed flush() override {
    for (; !added_.empty(); added_.pop_front()) {
      if (!reads_ && readable_ == 0 && !end_) return Flushed::later;
      if (end_ || send_fails) return Flushed::failed;
      if (!reads_) --readable_;
      last_kind = added_.front().first;
      seen.push_back(last_kind == Kind::ping ? "<ping>" : std::move(added_.front().second));
    }
    return Flushed::all;
  }
  Task<> writable() override { return sendable_.wait(); }

  void close(std::uint16_t code, std::string_view) override {
    closed = code;
    if (answers_close && !end_) end({Ended::How::closed, code});
  }

  Task<> linger() override { co_return; }

  void abort() override {
    aborted = true;
    if (!end_) end({Ended::How::lost});
  }

  std::optional<Time> hung_up_since() const override { return hung_up; }
  bool is_reset() override { return reset; }
  std::size_t untaken() override { return under_way; }
  Time heard() const override { return heard_at; }
  std::optional<Time> assembling_since() const override { return incomplete_since; }
  std::optional<Time> sending_since() const override { return stuck_since; }

 private:
  void arrive(std::pair<Kind, std::string> message) {
    waiting_.push_back(std::move(message));
    arrived_.notify();
  }

  Wakeup arrived_;
  Wakeup sendable_;
  std::deque<std::pair<Kind, std::string>> waiting_;
  std::pair<Kind, std::string> current_;
  std::deque<std::pair<Kind, std::string>> added_;  // and not seen yet
  std::optional<Ended> end_;
  bool reads_ = true;
  std::size_t readable_ = 0;
};

}  // namespace millrace
