// SPDX-License-Identifier: Apache-2.0
// Clients over ZeroMQ that keep to their credit, with every format and rate.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "tests/streams/recorded_runs.h"
#include "tests/transport/sessions/plain_stream.h"
#include "tests/transport/sessions/zeromq/peer_fixture.h"

using namespace millrace;
namespace cp = client_protocol;

namespace {

// A client that sends as much as its credit allows, or less. Its lane takes and answers rows at
// random.
class CreditPlay {
 public:
  explicit CreditPlay(std::uint32_t seed) : random_(seed), audio_(random_) {
    type_.rate = audio_.one_of({8000u, 16'000u, 44'100u, 48'000u, audio_.draw(1000, 192'000)});
    format_ = audio_.format(1);
    width_ = audio_.draw(1, 800);
    limit_ = width_ + audio_.draw(0, 1) * audio_.draw(0, 20'000);
    admission_.emplace(Spec{.size = width_}, limit_, format_, type_);
    context_.emplace(PeerContext{*admission_, encoder_, limits_, stats_, retry_times_, access_});
    peer_.emplace(wire_, *context_, now_);
    peer_->received(cp::ToService(cp::Open{.stream = 7}), now_);
  }

  void run() {
    for (int i = 0; i < 300; ++i) {
      read();
      audio_.draw(0, 2) > 0 && granted_ > 0 ? send() : serve();
      check_bound();
    }
    finish_rows();
    read();
    CHECK(granted_ > 0);  // with no row outstanding, the client can always send
  }

 private:
  static constexpr std::uint64_t most_at_once = 5000;

  test::PlainStream& stream() { return *admission_->streams.front(); }
  bool is_opus() const { return format_.format == SampleFormat::opus; }

  void read() {
    peer_->flush(now_);
    for (const std::string& line : std::exchange(wire_.lines, {})) {
      if (line.starts_with("credit")) granted_ += std::stoull(line.substr(9));
      INFO(line);
      REQUIRE(
          (line.starts_with("credit") || line.starts_with("ready") || line.starts_with("result")));
    }
  }

  void send() {
    const std::uint64_t most = std::min(granted_, most_at_once);
    const std::uint32_t count = is_opus() ? 1 : audio_.draw(1, static_cast<std::uint32_t>(most));
    std::vector<std::byte> bytes = audio_.message(format_, count);
    if (is_opus()) bytes = {std::byte{3 << 3 | 1}};  // the longest packet: 120 ms
    peer_->received(cp::ToService(cp::Frames{.stream = 7, .at = sent_, .bytes = bytes}), now_);
    while (peer_->is_unfinished()) peer_->proceed();
    sent_ += count;
    granted_ -= count;
  }

  void serve() {
    test::PlainStream& its = stream();
    if (its.taken < its.lane.rows.size() && audio_.draw(0, 1) == 0) {
      its.taken = its.lane.rows.size();
      its.stream.batched(its.taken - 1, now_);
    } else if (its.answered < its.taken) {
      its.stream.done({.seq = its.answered++, .answer = {}, .at = {}}, now_);
    }
  }

  void finish_rows() {
    test::PlainStream& its = stream();
    while (its.answered < its.lane.rows.size())
      its.stream.done({.seq = its.answered++, .answer = {}, .at = {}}, now_);
  }

  // The frames of one client frame, and those that the resampler holds, come on top of a window.
  void check_bound() {
    const double longest = is_opus() ? 0.12 : 1 / format_.rate;
    const auto above = static_cast<std::uint64_t>((longest + 0.2) * type_.rate) + 1;
    const std::uint64_t most = std::max(limit_, width_ + above);
    REQUIRE(stream().stream.held_bytes() <= most * type_.bytes());
  }

  std::mt19937 random_;
  test::RandomAudio audio_;
  FrameType type_;
  ClientFormat format_;
  std::uint32_t width_ = 0;
  std::uint64_t limit_ = 0, granted_ = 0, sent_ = 0;
  ConnectionLimits limits_{.message = std::size_t{1} << 20};
  TransportStats stats_;
  cp::Encoder encoder_;
  test::MemoryWire wire_;
  RetryTimes retry_times_;
  ClientAccess access_;
  std::optional<test::PlainAdmission> admission_;
  std::optional<PeerContext> context_;
  Time now_{std::chrono::hours(1)};
  std::optional<ClientPeer> peer_;
};

}  // namespace

TEST_CASE("a client that keeps to its credit is never refused, and always gets more") {
  for (std::uint32_t seed = 1; seed <= 150; ++seed) {
    INFO("seed " << seed);
    CreditPlay(seed).run();
  }
}
