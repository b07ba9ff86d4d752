// SPDX-License-Identifier: Apache-2.0
// Results to clients that read at random speeds, over WebSocket and over ZeroMQ.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "tests/support/memory_connection.h"
#include "tests/transport/sessions/plain_stream.h"
#include "tests/transport/sessions/zeromq/peer_fixture.h"
#include "transport/sessions/millrace_v1/conversation.h"
#include "transport/sessions/session.h"

using namespace millrace;
using namespace std::chrono_literals;
using test::Lines;
namespace cp = client_protocol;

namespace {

constexpr std::size_t row_frames = 10;
constexpr std::uint64_t frames_limit = 1000;
constexpr ConnectionLimits patient{.ping = std::chrono::hours(24),
                                   .idle = std::chrono::hours(24),
                                   .message_idle = std::chrono::hours(24)};

// A connected client with one stream. It reads when the test requests it: "result 0", "result 1",
// "closed", "error slow_reader".
class Way {
 public:
  virtual ~Way() = default;
  virtual test::PlainStream& plain() = 0;
  virtual void frames(std::uint64_t at, std::size_t count) = 0;
  virtual void end() = 0;
  virtual void reads(std::size_t messages) = 0;
  virtual void reads_all() = 0;
  virtual void takes_nothing(Duration time) = 0;
  virtual bool full() const = 0;
  virtual void settle() = 0;
  virtual Lines said() const = 0;
};

class WebSocketWay final : public Way {
 public:
  explicit WebSocketWay(Time now) : now_(now) {
    client_.stop_reading();
    (void)outbox_.open(admission_, {});
    scope_.spawn(run_session(scope_, gate_, client_, outbox_));
    settle();
  }
  ~WebSocketWay() override {
    client_.end({});
    settle();
  }
  test::PlainStream& plain() override { return *admission_.streams.front(); }
  void frames(std::uint64_t, std::size_t count) override {
    client_.binary(std::string(2 * count, '\0'));
    settle();
  }
  void end() override {
    client_.text(R"({"type":"end"})");
    settle();
  }
  void reads(std::size_t messages) override {
    client_.read(messages);
    settle();
  }
  void reads_all() override {
    client_.read_again();
    settle();
  }
  void takes_nothing(Duration time) override {
    if (outbox_.queue().unsent() > 0) client_.stuck_since = now_;
    scope_.sweep(now_ + time);
    client_.stuck_since.reset();
    settle();
  }
  bool full() const override { return outbox_.full(); }
  void settle() override {
    context_.restart();
    context_.poll();
  }
  Lines said() const override {
    Lines lines;
    for (const std::string& message : client_.seen)
      if (!message.starts_with(R"({"type":"goaway")") && !message.starts_with(R"({"type":"ready")"))
        lines.push_back(line_of(message));
    return lines;
  }

 private:
  static std::string line_of(const std::string& message) {
    if (message.starts_with(R"({"type":"closed")")) return "closed";
    if (message.starts_with(R"({"type":"error","code":"slow_reader")")) return "error slow_reader";
    constexpr std::string_view result = R"({"type":"result","seq":)";
    if (!message.starts_with(result)) return message;
    return "result " +
           message.substr(result.size(), message.find(',', result.size()) - result.size());
  }

  const Time now_;
  const ConnectionLimits limits_ = patient;
  net::io_context context_{1};
  TransportStats stats_;
  ClientGate gate_{.sockets = Budget(10)};
  SessionScope scope_{context_.get_executor(), limits_, stats_};
  test::PlainAdmission admission_{{.size = row_frames}, frames_limit};
  MillraceV1Conversation outbox_{scope_, {}};
  MemoryConnection client_{context_.get_executor()};
};

class ZeromqWay final : public Way {
 public:
  explicit ZeromqWay(Time now) : now_(now) {
    wire_.room = 2;  // Ready and Credit
    says(cp::Open{.stream = 1});
  }
  test::PlainStream& plain() override { return *admission_.streams.front(); }
  void frames(std::uint64_t at, std::size_t count) override {
    const std::vector<std::byte> bytes(2 * count);
    says(cp::Frames{.stream = 1, .at = at, .bytes = bytes});
  }
  void end() override { says(cp::End{.stream = 1}); }
  void reads(std::size_t messages) override {
    wire_.room += messages;
    settle();
  }
  void reads_all() override { reads(std::size_t{1} << 20); }
  void takes_nothing(Duration time) override {
    peer_.check(now_);  // starts the time limit
    now_ += time;
    peer_.check(now_);
    settle();
  }
  bool full() const override { return admission_.streams.front()->full(); }
  void settle() override { peer_.flush(now_); }
  Lines said() const override {
    Lines lines;
    for (const std::string& line : wire_.lines) {
      if (line.starts_with("credit") || line.starts_with("ready") || line.starts_with("goaway"))
        continue;
      if (line.starts_with("result 1 "))
        lines.push_back("result " + line.substr(9, line.find(' ', 9) - 9));
      else if (line.starts_with("closed"))
        lines.emplace_back("closed");
      else
        lines.push_back(line == "error 1 slow_reader" ? "error slow_reader" : line);
    }
    return lines;
  }

 private:
  template <class Message>
  void says(const Message& message) {
    peer_.received(cp::ToService(message), now_);
    settle();
  }

  Time now_;
  const ConnectionLimits limits_ = patient;
  TransportStats stats_;
  cp::Encoder encoder_;
  test::PlainAdmission admission_{{.size = row_frames}, frames_limit};
  test::MemoryWire wire_;
  RetryTimes retry_times_;
  ClientAccess access_;
  PeerContext context_{admission_, encoder_, limits_, stats_, retry_times_, access_};
  ClientPeer peer_{wire_, context_, now_};
};

// One stream with a worker that answers at random lengths, and a client that reads now and then.
class ResultsPlay {
 public:
  ResultsPlay(Way& way, std::uint32_t seed) : way_(way), random_(seed) {}

  void check() {
    const std::uint64_t steps = draw(50, 400);
    for (std::uint64_t i = 0; i < steps; ++i) step();
    if (!ended_) end();
    given_up_ ? give_up() : finish();
  }

 private:
  std::uint64_t draw(std::uint64_t from, std::uint64_t to) {
    return std::uniform_int_distribution(from, to)(random_);
  }

  void step() {
    const std::uint64_t what = draw(0, 99);
    if (what < 35) return send();
    if (what < 70) return answer();
    if (what < 90) return way_.reads(draw(1, 8));
    if (what < 95) return rest();
    if (what == 99 && draw(0, 9) == 0) end();
  }

  void rest() {
    way_.takes_nothing(5s);
    way_.reads(1);
  }

  // While the client's queue is full, no further row is handed over.
  void send() {
    if (ended_ || position_ >= frames_limit / 2) return;
    const std::size_t before = way_.plain().lane.rows.size();
    const bool full = way_.full();
    const std::uint64_t count = draw(1, 60);
    way_.frames(position_, count);
    position_ += count;
    if (full) REQUIRE(way_.plain().lane.rows.size() == before);
  }

  void answer() {
    test::PlainStream& plain = way_.plain();
    if (plain.answered == plain.lane.rows.size()) return;
    if (plain.taken == plain.answered) plain.stream.batched(plain.taken++, now_);
    const bool none = draw(0, 9) == 0;
    const std::size_t length = draw(0, 3) == 0 ? draw(1, 200'000) : draw(1, 500);
    if (!none) results_.push_back("result " + std::to_string(plain.answered));
    plain.stream.done({.seq = plain.answered++,
                       .answer = {none ? Answer::Kind::none : Answer::Kind::text,
                                  std::string(none ? 0 : length, 'x')},
                       .at = {}},
                      now_);
    way_.settle();
  }

  // By the client, or because the service stops.
  void end() {
    ended_ = true;
    given_up_ = draw(0, 2) == 0;
    draw(0, 1) == 0 ? way_.end() : way_.plain().stream.drain(now_);
    way_.settle();
  }

  // The client reads everything in the end.
  void finish() {
    test::PlainStream& plain = way_.plain();
    while (!plain.stream.finished()) {
      answer();
      way_.reads(1);
    }
    way_.reads_all();
    results_.emplace_back("closed");
    CHECK(way_.said() == results_);
    CHECK(plain.stats.dropped[ResultLoss::slow_reader].value() == 0);
    CHECK(plain.stats.results.value() == 0);
  }

  // The client stops reading until its time limit has passed.
  void give_up() {
    for (int i = 0; i < 200; ++i) answer();
    const Lines before = way_.said();
    way_.takes_nothing(11s);
    way_.reads_all();
    const Lines said = way_.said();
    if (said == before) return;  // no message waited, so the client is not slow
    REQUIRE(std::ranges::count(said, "closed") == (said.back() == "closed"));
    if (said.back() == "closed") {  // only that message waited
      CHECK(Lines(said.begin(), said.end() - 1) == results_);
      return;
    }
    CHECK(said.back() == "error slow_reader");
    REQUIRE(said.size() <= results_.size() + 1);
    CHECK(std::equal(said.begin(), said.end() - 1, results_.begin()));
  }

  Way& way_;
  std::mt19937 random_;
  const Time now_ = Clock::now();
  std::uint64_t position_ = 0;
  Lines results_;
  bool ended_ = false;
  bool given_up_ = false;  // it stops reading
};

}  // namespace

TEMPLATE_TEST_CASE("every result reaches its client in order, or the stream ends with slow_reader",
                   "", WebSocketWay, ZeromqWay) {
  for (std::uint32_t seed = 1; seed <= 150; ++seed) {
    INFO("seed " << seed);
    TestType way(Clock::now());
    ResultsPlay(way, seed).check();
  }
}
