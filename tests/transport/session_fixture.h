// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/memory_connection.h"
#include "transport/session.h"

namespace millrace {

// What a session told its stream, one line a call.
struct SinkLog {
  std::vector<std::string> calls;
  std::size_t written = 0;
  bool paused = false;
  bool fails = false;                // to take frames, a tick, or word of what was written
  SessionOutbox* rejects = nullptr;  // if it does: where it says so
};

class LoggingSink final : public StreamSink {
 public:
  explicit LoggingSink(SinkLog& log) : log_(log) {}
  ~LoggingSink() override {
    if (!lost_) say("lost");
  }

  void frames(Bytes bytes, Time) override {
    work();
    say("frames " + std::to_string(bytes.size()));
    if (log_.rejects) log_.rejects->rejected(ErrorCode::values, "no", 1);
  }
  void flush(std::optional<std::uint64_t> mark, Time) override {
    say(mark ? "flush " + std::to_string(*mark) : "flush");
  }
  void reset(Time) override { say("reset"); }
  void gap(std::uint64_t frames, Time) override { say("gap " + std::to_string(frames)); }
  void end(Time) override { say("end"); }
  void refused(ErrorCode code, std::string_view, Time) override {
    say("refused " + std::string(name_of(code)));
  }
  void retire(Time) override { say("retire"); }
  void lost(bool clean, Time) override {
    lost_ = true;
    say(clean ? "lost clean" : "lost");
  }
  void reject(ErrorCode, std::string_view, std::uint64_t, Time) override {}
  std::uint64_t room() const override { return 0; }
  bool overrun() const override { return false; }
  bool paused() const override { return log_.paused; }
  void tick(Time) override {
    work();
    say("tick");
  }
  void written(std::size_t results, Time) override {
    work();
    log_.written += results;
  }

 private:
  void work() const {
    if (log_.fails) throw std::length_error("too much");
  }
  void say(std::string call) { log_.calls.push_back(std::move(call)); }
  SinkLog& log_;
  bool lost_ = false;
};

// A session between a client and a stream that are both the test. Nothing waits for the clock.
struct SessionFixture {
  explicit SessionFixture(ConnectionLimits chosen = {}) : limits(chosen) {
    scope.spawn(run_session(scope, client, outbox, std::make_unique<LoggingSink>(stream)));
    settle();
  }
  ~SessionFixture() {
    client.end({});
    stream.paused = false;
    outbox.resume();
    settle();
  }

  // Runs until everybody waits.
  void settle() {
    context.restart();
    context.poll();
  }
  void client_says(std::string text) {
    client.text(std::move(text));
    settle();
  }
  void client_sends(std::size_t bytes) {
    client.binary(std::string(bytes, 'x'));
    settle();
  }
  void client_ends(Connection::Ended ended) {
    client.end(ended);
    settle();
  }
  void result(std::string json) {
    outbox.result({.flags = 0}, {Answer::Kind::json, std::move(json)});
    settle();
  }
  // The time limits as if so much time had passed.
  void after(std::chrono::milliseconds time) {
    scope.sweep(Clock::now() + time);
    settle();
  }

  using Calls = std::vector<std::string>;
  ConnectionLimits limits;
  net::io_context context{1};
  DoorStats stats;
  SinkLog stream;
  std::vector<std::string> reports;
  SessionScope scope{context.get_executor(), limits, stats,
                     [this](std::string_view what) { reports.emplace_back(what); }};
  SessionOutbox outbox{scope};
  MemoryConnection client{context.get_executor()};
};

}  // namespace millrace
