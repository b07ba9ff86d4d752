// SPDX-License-Identifier: Apache-2.0
// A protocol whose streams are opened by messages, one after another on one connection.
#include "transport/sessions/conversation.h"

#include <catch2/catch.hpp>

#include "tests/support/memory_connection.h"
#include "tests/transport/sessions/plain_stream.h"
#include "tests/transport/sessions/server_fixture.h"
#include "transport/sessions/session.h"

using namespace millrace;
using namespace std::chrono_literals;
using How = Connection::Ended::How;

namespace {

// "open NAME" opens a stream, "end" ends it, "next" ends it for the next one, "bye" ends the
// conversation; other bytes are frames.
class Talk final : public Conversation {
 public:
  Talk(SessionScope& scope, StreamAdmission& admission)
      : Conversation(scope, {.peer = "127.0.0.1:1"}), admission_(admission) {}

  void received(const Connection::Message& message) override {
    const std::string_view text = message.text();
    if (text == "bye") {
      queue().close(false);
    } else if (text.starts_with("next ")) {
      end_stream(message.arrived);
    } else if (text.starts_with("open ")) {
      if (const auto refused = open(admission_, {.id = std::string(text.substr(5))}))
        send("refused " + refused->message);
    } else if (!stream()) {
      send("no stream is open");
    } else if (text == "end") {
      stream()->end(message.arrived);
    } else {
      stream()->frames(message.bytes, message.arrived);
    }
  }
  bool has_ended() const override { return false; }
  std::chrono::milliseconds longest_wait() const override { return waits; }
  bool outlives_silence(Time now) override {
    if (outlives) end_stream(now);
    return outlives;
  }
  std::chrono::milliseconds waits = 30s;
  bool outlives = false;

  void ready(const StreamReady& ready) override { send("ready " + std::string(ready.stream)); }
  void result(const ResultHead& head, const Answer& answer) override {
    if (answer.data.empty()) return queue().add_result();
    send("result " + std::to_string(head.seq) + " " + answer.data, true);
  }
  void message(const MessageHead&, const Answer&) override {}
  void flushed(std::uint64_t, std::uint64_t) override {}
  void rejected(ErrorCode code, std::string_view, std::uint64_t) override {
    send("rejected " + std::string(name_of(code)));
  }
  void warning(ErrorCode, std::string_view) override {}
  void goaway() override { send("goaway"); }
  void error(ErrorCode code, std::string_view) override {
    send("error " + std::string(name_of(code)));
    stream_is_over();
  }
  void closed(std::uint64_t frames, std::uint64_t, bool drained) override {
    send("closed " + std::to_string(frames));
    drained ? queue().close(true) : stream_is_over();
  }

 private:
  void send(std::string_view text, bool is_result = false) {
    if (queue().closing()) return;
    queue().bytes().append(text);
    queue().commit(Connection::Kind::text, is_result);
  }
  StreamAdmission& admission_;
};

struct TalkFixture {
  TalkFixture() {
    scope.spawn(run_session(scope, gate, client, talk));
    settle();
  }
  ~TalkFixture() {
    client.end({});
    settle();
  }
  void settle() {
    context.restart();
    context.poll();
  }
  void says(std::string text) {
    client.text(std::move(text));
    settle();
  }
  // The next row of stream `i` is done.
  void answer(std::size_t i, std::string text) {
    test::PlainStream& stream = *admission.streams[i];
    stream.stream.batched(stream.answered, Clock::now());
    stream.stream.done({.seq = stream.answered++, .answer = {Answer::Kind::text, std::move(text)}},
                       Clock::now());
    settle();
  }
  // Checks the time limits as if `time` had passed.
  void after(Duration time) {
    scope.sweep(Clock::now() + time);
    settle();
  }
  std::vector<std::string> seen() { return std::exchange(client.seen, {}); }
  bool connected(std::size_t i) const { return admission.streams[i]->stream.connected(); }

  using Lines = std::vector<std::string>;
  net::io_context context{1};
  ConnectionLimits limits;
  TransportStats stats;
  SessionScope scope{context.get_executor(), limits, stats};
  ClientGate gate{.sockets = Budget(10), .waiting = Budget(10)};
  test::PlainAdmission admission{{.size = 2}, 100};
  Talk talk{scope, admission};
  MemoryConnection client{context.get_executor()};
};

}  // namespace

TEST_CASE_METHOD(TalkFixture, "streams open after the upgrade, one after another on a connection") {
  says("abcd");
  CHECK(seen() == Lines{"no stream is open"});

  says("open a");
  says("abcd");
  answer(0, "one");
  says("end");
  answer(0, "last");
  CHECK(seen() == Lines{"ready s", "result 0 one", "result 1 last", "closed 2"});
  CHECK_FALSE(connected(0));

  says("open b");
  says("abcdefgh");
  answer(1, "two");
  CHECK(seen() == Lines{"ready s", "result 0 two"});
  CHECK(admission.streams[1]->stats.latency.sum() > 0);  // its result was written
  says("bye");
  CHECK(client.closed == 1000);
  CHECK_FALSE(connected(1));
  CHECK(stats.messages[MessageType::open].value() == 2);
  CHECK(stats.closed[Closing::client].value() == 1);
}

TEST_CASE_METHOD(TalkFixture,
                 "a result without a message is written after the messages before it") {
  says("open a");
  says("abcd");
  answer(0, "");
  CHECK(admission.streams[0]->stats.results.value() == 0);
  says("abcd");
  client.stop_reading();
  answer(0, "one");
  says("end");
  answer(0, "");
  CHECK(admission.streams[0]->stats.results.value() == 2);
  client.read_again();
  settle();
  CHECK(admission.streams[0]->stats.results.value() == 0);
  CHECK(seen() == Lines{"ready s", "result 1 one", "closed 4"});
}

TEST_CASE_METHOD(TalkFixture,
                 "unwritten results of a failed stream do not count for the next stream") {
  says("open a");
  says("abcd");
  client.stop_reading();
  answer(0, "one");
  admission.streams[0]->stream.fail(ErrorCode::no_worker, "none came", Clock::now());
  says("open b");
  says("abcd");
  CHECK_FALSE(connected(0));
  client.read_again();
  settle();
  answer(1, "two");
  CHECK(seen() == Lines{"ready s", "result 0 one", "error no_worker", "ready s", "result 0 two"});
  CHECK(admission.streams[1]->stats.results.value() == 0);
  CHECK(connected(1));
}

TEST_CASE_METHOD(TalkFixture, "a silent client with a stream is ended") {
  says("open a");
  (void)seen();
  after(31s);
  CHECK(seen() == Lines{"<ping>", "error idle"});
  CHECK(client.closed == 4408);
}

TEST_CASE_METHOD(TalkFixture, "a connection waits for its streams only as long as its protocol") {
  talk.waits = 60s;
  says("open a");
  CHECK(stats.waiting.value() == 0);
  says("end");
  answer(0, "last");
  (void)seen();
  after(0s);
  CHECK(stats.waiting.value() == 1);
  says("what?");
  after(59s);
  CHECK_FALSE(client.closed.has_value());
  after(61s);
  CHECK(client.closed == 4408);
}

TEST_CASE_METHOD(TalkFixture, "connections without a stream are limited") {
  const Share others(gate.waiting, 10);
  after(0s);
  CHECK(seen().empty());
  CHECK(client.closed == 1013);
}

TEST_CASE_METHOD(TalkFixture, "when memory is short, only connections without a stream end") {
  says("open a");
  gate.memory_short = true;
  after(0s);
  CHECK_FALSE(client.closed.has_value());
  says("end");
  answer(0, "last");
  after(0s);
  CHECK(client.closed == 1013);
}

TEST_CASE_METHOD(TalkFixture, "a client is not read while its stream ends for the next one") {
  says("open a");
  says("abcd");
  says("next b");
  says("efgh");
  answer(0, "one");
  CHECK(seen() == Lines{"ready s", "result 0 one"});
  answer(0, "last");
  CHECK(seen() == Lines{"result 1 last", "closed 2", "no stream is open"});
  says("open b");
  CHECK(seen() == Lines{"ready s"});
}

TEST_CASE_METHOD(TalkFixture, "a silent client may keep its connection without its stream") {
  talk.outlives = true;
  says("open a");
  says("abcd");
  after(31s);
  answer(0, "one");
  answer(0, "last");
  after(31s);
  CHECK(seen() == Lines{"ready s", "<ping>", "result 0 one", "result 1 last", "closed 2"});
  CHECK_FALSE(client.closed.has_value());
  CHECK(stats.waiting.value() == 1);
}

TEST_CASE_METHOD(TalkFixture, "when the service stops, a connection without a stream is closed") {
  scope.drain();
  scope.sweep(Clock::now());
  settle();
  CHECK(client.closed == 1012);
  CHECK(stats.closed[Closing::drain].value() == 1);
}

TEST_CASE_METHOD(TalkFixture, "when the service stops, a stream ends, and its connection closes") {
  says("open a");
  scope.drain();
  scope.sweep(Clock::now());
  CHECK_FALSE(client.closed.has_value());
  admission.streams[0]->stream.drain(Clock::now());
  answer(0, "last");
  CHECK(seen() == Lines{"ready s", "goaway", "result 0 last", "closed 0"});
  CHECK(client.closed == 1012);
}

TEST_CASE_METHOD(TalkFixture, "a lost connection aborts the open stream, and no other") {
  says("open a");
  says("end");
  answer(0, "last");
  says("open b");
  client.end({How::lost});
  settle();
  CHECK(admission.streams[0]->stats.closed[StreamClosing::end].value() == 1);
  CHECK_FALSE(connected(1));
  answer(1, "");  // ABORT
  CHECK(admission.streams[1]->stats.closed[StreamClosing::client_gone].value() == 1);
}
