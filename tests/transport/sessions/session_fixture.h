// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/memory_connection.h"
#include "tests/support/quiet_stream.h"
#include "transport/sessions/millrace_v1/conversation.h"
#include "transport/sessions/session.h"

namespace millrace {

class LoggingStream;

// The calls of a session to its stream, one line each.
struct StreamLog {
  void pause(bool paused);  // has no effect after the stream was destroyed

  LoggingStream* stream = nullptr;
  std::vector<std::string> calls;
  std::size_t written = 0;
  std::size_t piece = 0;            // bytes; 0: messages are given whole
  bool ended = false;               // over an earlier connection
  bool resumes = false;             // the stream outlives its connection
  bool fails = false;               // frames(), tick() and written() throw
  ClientOutput* rejects = nullptr;  // rejects frames there
};

class LoggingStream final : public test::QuietStream {
 public:
  explicit LoggingStream(StreamLog& log) : log_(log) { log.stream = this; }
  ~LoggingStream() override {
    log_.stream = nullptr;
    if (!lost_) say("lost");
  }
  void pause(bool paused) { paused_ = paused; }

  void frames(Bytes bytes, Time) override {
    work();
    say("frames " + std::to_string(bytes.size()));
    if (log_.rejects) log_.rejects->rejected(ErrorCode::values, "no", 1);
  }
  std::size_t piece(Bytes message) override {
    return log_.piece > 0 ? std::min(log_.piece, message.size()) : message.size();
  }
  void flush(std::optional<std::uint64_t> mark, Time) override {
    say(mark ? "flush " + std::to_string(*mark) : "flush");
  }
  bool has_ended() const override { return log_.ended; }
  bool outlives_connection() const override { return log_.resumes; }
  void reset(Time) override { say("reset"); }
  void gap(std::uint64_t frames, Time) override { say("gap " + std::to_string(frames)); }
  void end(Time) override { say("end"); }
  void fail(ErrorCode code, std::string_view, Time) override {
    say("failed " + std::string(name_of(code)));
  }
  void drain(Time) override { say("drain"); }
  void disconnected(ConnectionEnd how, Time) override {
    lost_ = true;
    say(how == ConnectionEnd::clean ? "lost clean" : "lost");
  }
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
  StreamLog& log_;
  bool lost_ = false;
};

inline void StreamLog::pause(bool paused) {
  if (stream) stream->pause(paused);
}

class LoggingAdmission final : public StreamAdmission {
 public:
  explicit LoggingAdmission(StreamLog& log) : log_(log) {}
  Result<StreamHandle, RequestError> open(StreamRequest, const ClientIdentity&,
                                          ClientOutput&) override {
    return StreamHandle(new LoggingStream(log_));
  }

 private:
  StreamLog& log_;
};

// A session between a client and a stream that are both parts of the test. Tests do not wait:
// after() passes a time.
struct SessionFixture {
  // `ended`: the stream has received its end over an earlier connection.
  explicit SessionFixture(ConnectionLimits chosen = {}, bool ended = false) : limits(chosen) {
    stream.ended = ended;
    (void)outbox.open(admission, {});
    scope.spawn(run_session(scope, gate, client, outbox));
    settle();
  }
  ~SessionFixture() {
    client.end({});
    stream.pause(false);
    outbox.resume();
    settle();
  }

  // Runs until all coroutines wait.
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
  // Checks the time limits as if `time` had passed.
  void after(std::chrono::milliseconds time) {
    scope.sweep(Clock::now() + time);
    settle();
  }

  using Calls = std::vector<std::string>;
  ConnectionLimits limits;
  net::io_context context{1};
  TransportStats stats;
  StreamLog stream;
  std::vector<std::string> reports;
  ClientGate gate{.sockets = Budget(10)};
  SessionScope scope{context.get_executor(), limits, stats,
                     [this](std::string_view what) { reports.emplace_back(what); }};
  LoggingAdmission admission{stream};
  MillraceV1Conversation outbox{scope, {}};
  MemoryConnection client{context.get_executor()};
};

}  // namespace millrace
