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

// A connection whose peer is the test. Confined to one thread.
class MemoryConnection final : public Connection {
 public:
  explicit MemoryConnection(Executor executor) : arrived_(executor), sendable_(executor) {}

  // Actions of the peer.
  void text(std::string bytes) { arrive({Kind::text, std::move(bytes)}); }
  void binary(std::string bytes) { arrive({Kind::binary, std::move(bytes)}); }
  void end(Ended ended) {
    end_ = ended;
    arrived_.notify();
    sendable_.notify();
  }
  void next_turn() {
    turn_over = false;
    arrived_.notify();
  }
  void stop_reading() { reads_ = false; }
  void read_again() {
    reads_ = true;
    sendable_.notify();
  }
  // After stop_reading(): reads this many further messages.
  void read(std::size_t messages) {
    readable_ = messages;
    sendable_.notify();
  }

  // Observations of the peer.
  std::vector<std::string> seen;        // messages; "<ping>" for a ping
  Kind last_kind = Kind::text;          // kind of the last message
  std::optional<std::uint16_t> closed;  // our close code
  bool aborted = false;
  std::size_t unreceived() const { return waiting_.size(); }  // messages not yet received

  // The values by which the time limits are checked.
  Time last_received_at = Clock::now();
  std::optional<Time> incomplete_since;
  std::optional<Time> stuck_since;
  std::optional<Time> peer_closed;
  bool reset = false;
  std::uint64_t control_frames = 0;
  std::uint64_t examined_bytes = 0;
  std::size_t unexamined_bytes = 0;
  std::size_t unacknowledged_bytes = 0;
  bool turn_over = false;  // readable() then returns at next_turn()
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
  bool is_turn_over() override { return turn_over; }

  void add(Kind kind, std::string_view bytes) override { added_.emplace_back(kind, bytes); }
  Flushed flush() override {
    for (; !added_.empty(); added_.pop_front()) {
      if (!reads_ && readable_ == 0 && !end_) return Flushed::later;
      const bool gone = end_ && end_->how != Ended::How::half_closed;
      if (gone || send_fails) return Flushed::failed;
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

  std::optional<Time> peer_closed_since() const override { return peer_closed; }
  bool is_reset() override { return reset; }
  std::uint64_t controls() const override { return control_frames; }
  std::uint64_t examined() const override { return examined_bytes; }
  std::size_t unexamined() override { return unexamined_bytes; }
  std::size_t unacknowledged() override { return unacknowledged_bytes; }
  Time last_received() const override { return last_received_at; }
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
  std::deque<std::pair<Kind, std::string>> added_;  // not yet seen
  std::optional<Ended> end_;
  bool reads_ = true;
  std::size_t readable_ = 0;
};

}  // namespace millrace
