// SPDX-License-Identifier: Apache-2.0
// Random messages of several peers on their streams, in random order.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "tests/support/bytes.h"
#include "tests/support/chunk_reference.h"
#include "tests/transport/sessions/plain_stream.h"
#include "tests/transport/sessions/zeromq/peer_fixture.h"

using namespace millrace;
using test::MemoryWire;
using test::PlainStream;
using Kind = Event::Kind;
namespace cp = client_protocol;

namespace {

// One stream as its client sees it, and the events that its messages must cause.
struct Sender {
  std::uint64_t number = 0;
  PlainStream* plain = nullptr;
  bool obeys = true;
  std::uint64_t position = 0;            // in the service
  std::int64_t granted = 0;              // as counted by the service
  std::int64_t credit_read = 0;          // the part that the client has read
  std::uint64_t lost = 0, received = 0;  // frames
  std::uint64_t had = 0;                 // messages with frames before the position
  std::vector<Event> events;
  bool ended = false;
  test::Lines said{};
};

struct Client {
  MemoryWire wire;
  std::unique_ptr<ClientPeer> peer;
  std::vector<Sender> senders;
  bool obeys = true;
  bool lost = false;
};

// Different for any two streams of a client.
std::int16_t value_at(std::uint64_t stream, std::uint64_t position) {
  return static_cast<std::int16_t>((stream * 1'000 + position) % 30'000 + 1);
}

class PeerPlay {
 public:
  explicit PeerPlay(std::uint32_t seed) : random_(seed), spec_(rule()), admission_(spec_, limit()) {
    for (Client& client : clients_) {
      client.obeys = chance(60);
      client.peer = std::make_unique<ClientPeer>(client.wire, context_, now_);
      const std::uint32_t streams = draw(1, 3);
      for (std::uint32_t i = 0; i < streams; ++i) open(client);
    }
    for (int i = 0; i < 400; ++i) act();
    finish();
  }

  void check() const {
    std::uint64_t had = 0;
    for (const Client& client : clients_)
      for (const Sender& sender : client.senders) {
        check(client, sender);
        had += sender.had;
      }
    CHECK(stats_.rejected[MessageFault::position].value() == had);
    CHECK(stats_.send_buffer.value() == 0);
  }

 private:
  std::uint32_t draw(std::uint32_t from, std::uint32_t to) {
    return std::uniform_int_distribution<std::uint32_t>(from, to)(random_);
  }
  bool chance(std::uint32_t percent) { return draw(1, 100) <= percent; }

  Spec rule() {
    return {.size = draw(1, 20), .left = draw(0, 20), .right = draw(0, 10), .min = draw(0, 5)};
  }
  std::uint64_t limit() { return limit_ = spec_.width() + draw(0, 100); }

  void open(Client& client) {
    const std::uint64_t number = client.senders.size() * 7;
    client.peer->received(cp::ToService(cp::Open{.stream = number}), now_);
    client.senders.push_back({.number = number,
                              .plain = admission_.streams.back().get(),
                              .obeys = client.obeys,
                              .events = {{.kind = Kind::open}}});
    settle(client);
  }

  void act() {
    now_ += std::chrono::milliseconds(1);
    Client& client = clients_[draw(0, 2)];
    Sender& sender = client.senders[draw(0, static_cast<std::uint32_t>(client.senders.size()) - 1)];
    if (chance(40)) return serve(client, sender);
    if (chance(50)) sender.credit_read = sender.granted;  // it reads its credits
    if (client.lost || sender.ended) return;
    const std::uint32_t what = draw(1, 100);
    if (what <= 75) return frames(client, sender);
    if (what <= 83) return say(client, sender, {.kind = Kind::flush}, cp::Flush{sender.number, {}});
    if (what <= 87) return say(client, sender, {.kind = Kind::reset}, cp::Reset{sender.number});
    if (what <= 95) return gap(client, sender);
    if (what == 96) return end(client, sender);
    if (what == 97 && chance(30)) return lose(client);
  }

  // Sends frames at the right position or not, whole or not. Their number is within the credit, or
  // random if the sender does not obey it.
  void frames(Client& client, Sender& sender) {
    std::uint64_t at = sender.position;
    if (chance(20)) at -= std::min<std::uint64_t>(at, draw(1, 30));
    if (chance(10)) at += draw(1, 30);
    std::uint64_t count = draw(1, 60);
    if (sender.obeys) count = std::min(count, static_cast<std::uint64_t>(sender.credit_read));
    const bool whole = !chance(3) && count > 0;
    std::vector<std::int16_t> values(count);
    for (std::uint64_t i = 0; i < count; ++i) values[i] = value_at(sender.number, at + i);
    auto bytes = test::bytes_of(values);
    if (!whole) bytes.push_back({});
    expect(sender, at, count, whole);
    client.peer->received(cp::ToService(cp::Frames{sender.number, at, bytes}), now_);
    settle(client);
  }

  static void expect(Sender& sender, std::uint64_t at, std::uint64_t count, bool whole) {
    const bool within = static_cast<std::int64_t>(count) <= sender.granted;
    sender.granted -= static_cast<std::int64_t>(count);
    sender.credit_read -= static_cast<std::int64_t>(count);
    if (at > sender.position) lose_frames(sender, Cause::client, at - sender.position);
    const std::uint64_t had = std::min(count, sender.position - at);
    if (had > 0) ++sender.had;
    if (count == had) return;
    if (!whole || !within) return lose_frames(sender, Cause::rejected, count - had);
    sender.events.push_back({.kind = Kind::frames, .count = count - had});
    sender.received += count - had;
    sender.position += count - had;
  }
  static void lose_frames(Sender& sender, Cause cause, std::uint64_t count) {
    sender.events.push_back({.kind = Kind::gap, .cause = cause, .count = count});
    sender.lost += count;
    sender.position += count;
  }

  void gap(Client& client, Sender& sender) {
    const std::uint64_t count = draw(1, 40);
    lose_frames(sender, Cause::client, count);
    client.peer->received(cp::ToService(cp::Gap{sender.number, count}), now_);
    settle(client);
  }

  template <class Message>
  void say(Client& client, Sender& sender, const Event& event, const Message& message) {
    sender.events.push_back(event);
    client.peer->received(cp::ToService(message), now_);
    settle(client);
  }

  void end(Client& client, Sender& sender) {
    sender.ended = true;
    say(client, sender, {.kind = Kind::end}, cp::End{sender.number});
  }

  void lose(Client& client) {
    client.lost = true;
    for (Sender& sender : client.senders) {
      // If no row was taken, an abort drops the waiting events, and the rows cannot be checked.
      if (!sender.ended && sender.plain->taken > 0)
        sender.events.push_back({.kind = Kind::abort, .cause = Cause::connection});
      else if (!sender.ended)
        sender.plain = nullptr;
    }
    client.peer->lost(now_);
  }

  // The lane takes or finishes a row of the stream.
  void serve(Client& client, Sender& sender) {
    PlainStream* const plain = sender.plain;
    if (!plain) return;
    if (plain->taken < plain->lane.rows.size() && chance(60)) {
      plain->stream.batched(plain->taken++, now_);
    } else if (plain->answered < plain->taken) {
      check_values(sender, plain->lane.rows[plain->answered]);
      plain->stream.done({.seq = plain->answered++, .answer = {Answer::Kind::text, "x"}, .at = {}},
                         now_);
    }
    if (!client.lost) settle(client);
  }

  static void check_values(const Sender& sender, const ReadyRow& ready) {
    std::uint64_t position = ready.row.window_begin();
    for (const Bytes part : ready.window)
      for (const std::int16_t value : test::values_of<std::int16_t>(part))
        if (value != value_at(sender.number, position++)) FAIL("a value of row " << ready.row.seq);
  }

  // The client receives its messages. Credit counts for the client only once it reads it.
  void settle(Client& client) {
    client.peer->flush(now_);
    for (const std::string& line : std::exchange(client.wire.lines, {})) {
      std::istringstream words(line);
      std::string what;
      std::uint64_t number = 0;
      words >> what >> number;
      Sender& sender = client.senders.at(number / 7 < client.senders.size() ? number / 7 : 0);
      std::int64_t frames = 0;
      if (what == "credit" && words >> frames)
        sender.granted += frames;
      else
        sender.said.push_back(line);
    }
    for (const Sender& sender : client.senders)
      if (sender.plain && sender.obeys && !sender.ended) {
        REQUIRE(sender.credit_read >= 0);
        REQUIRE_FALSE((sender.granted < 0 || sender.granted > static_cast<std::int64_t>(limit_)));
        REQUIRE(sender.plain->stats.buffer.value() <= bound());
      }
  }
  std::int64_t bound() const {
    const auto block = static_cast<std::int64_t>(FrameBuffer::block_bytes(2, spec_.width()));
    return static_cast<std::int64_t>(limit_) * 2 + 2 * block;
  }

  void finish() {
    for (Client& client : clients_)
      for (Sender& sender : client.senders) {
        if (!client.lost && !sender.ended) end(client, sender);
        while (sender.plain && !sender.plain->stream.finished()) serve(client, sender);
      }
  }

  void check(const Client& client, const Sender& sender) const {
    CHECK(sender.position == sender.received + sender.lost);
    if (!sender.plain) return;
    ReferenceChunker reference(spec_);
    for (const Event& event : sender.events) reference.event(event);
    const auto& rows = sender.plain->lane.rows;
    REQUIRE(rows.size() == reference.rows().size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Row& r = rows[i].row;
      const ReferenceChunker::Columns columns{r.seq,   r.begin, r.left, r.size,
                                              r.right, r.flags, r.gap};
      REQUIRE(columns == reference.rows()[i]);
    }
    CHECK(sender.plain->stream.position() == sender.position);
    CHECK(sender.plain->stats.frames.value() == sender.received);
    if (client.lost) return;
    std::size_t results = 0;
    for (const std::string& line : sender.said) {
      if (line.starts_with("result")) {
        CHECK(line.find(" " + std::to_string(results++) + " x") != line.npos);
      }
      if (sender.obeys) CHECK(line.find("too_fast") == line.npos);
    }
    CHECK(results == rows.size());
    CHECK(sender.said.back().starts_with("closed " + std::to_string(sender.number) + " " +
                                         std::to_string(sender.received)));
  }

  std::mt19937 random_;
  std::uint64_t limit_ = 0;
  Spec spec_;
  test::PlainAdmission admission_;
  cp::Encoder encoder_;
  ConnectionLimits limits_;
  TransportStats stats_;
  RetryTimes retry_times_;
  ClientAccess access_;
  PeerContext context_{admission_, encoder_, limits_, stats_, retry_times_, access_};
  Time now_{std::chrono::hours(1)};
  std::array<Client, 3> clients_;
};

}  // namespace

TEST_CASE("rows match the messages of peers, with any repeated, missing or excess frames") {
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    PeerPlay(seed).check();
  }
}
