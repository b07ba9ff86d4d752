// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/patience.h"
#include "tests/transport/zeromq/peers.h"
#include "transport/zeromq/router.h"

namespace millrace::test {

// A router whose thread the test runs, and its events. Peers are numbered 1, 2, 3 … in the order of
// their first event.
class Router final : public ZeromqSink {
 private:
  net::io_context io_;  // destroyed last

 public:
  explicit Router(ZeromqBinding binding = {}, std::uint64_t connections = 10'000)
      : room(connections) {
    if (binding.endpoint.empty()) binding.endpoint = "tcp://127.0.0.1:0";
    router.emplace(io_.get_executor(), binding, room, stats);
    router->start(*this);
  }

  // The events of the router, a line each: "1 hello", "1 malformed", "1 lost".
  std::vector<std::string> events;
  std::string waiting;                // sent to a peer that becomes writable
  std::vector<std::string> refusals;  // the reasons
  int left = 0;                       // calls of proceed() that the message "long" needs
  Duration work{};                    // CPU time of each of them
  std::function<void()> meanwhile;    // called by the first of them
  int failing = 0;                    // the number of messages whose reception still fails
  ZeromqStats stats;
  Budget room;
  std::optional<ZeromqRouter> router;

  std::uint16_t port() const { return router->port(); }
  ZeromqPeer peer(int number) const { return peers_.at(static_cast<std::size_t>(number) - 1); }
  bool has_event(const std::string& line) const {
    return std::find(events.begin(), events.end(), line) != events.end();
  }
  ZeromqRouter::Sent send(int number, std::string_view text) {
    return router->send(peer(number), std::as_bytes(std::span(text)));
  }
  std::uint64_t refused(Refusal why) const { return stats.refused[why].value(); }

  void run_until(const auto& happened) {
    const Time guard = Clock::now() + patience;
    while (!happened()) {
      if (Clock::now() > guard) throw std::runtime_error("it does not happen");
      io_.restart();
      try {
        io_.run_one_for(std::chrono::milliseconds(1));
      } catch (const std::bad_alloc&) {  // as an io thread does
      }
    }
  }
  // Runs what is ready now, without waiting.
  void poll() {
    io_.restart();
    try {
      io_.poll();
    } catch (const std::bad_alloc&) {
    }
  }
  void run_until_event(const std::string& line) {
    run_until([&] { return has_event(line); });
  }
  RawPeer& welcome(RawPeer& peer, const std::string& name = "") {
    peer.shake_hands(name);
    run_until([&] { return peer.is_ready(); });
    return peer;
  }
  template <class Peer>
  std::string next_of(Peer& peer) {
    std::optional<std::string> text;
    run_until([&] { return text = peer.receive(); });
    return *text;
  }

 private:
  bool received(ZeromqPeer peer, ZeromqMessage message, Time) override {
    if (failing > 0) {
      --failing;
      throw std::bad_alloc();
    }
    const Bytes bytes = message.bytes();
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    note(peer, text);
    return text == "long" && left > 0;
  }
  bool proceed(ZeromqPeer peer) override {
    for (const Time begin = Clock::now(); Clock::now() < begin + work;) {
    }
    if (meanwhile) std::exchange(meanwhile, nullptr)();
    note(peer, "proceeds");
    return --left > 0;
  }
  void malformed(ZeromqPeer peer) override { note(peer, "malformed"); }
  void lost(ZeromqPeer peer) override { note(peer, "lost"); }
  void writable(ZeromqPeer peer) override {
    if (!waiting.empty() && send(number_of(peer), waiting) == ZeromqRouter::Sent::accepted)
      waiting.clear();
  }

  void connection_refused(const Tcp::endpoint&, Refusal, std::string_view why) override {
    refusals.emplace_back(why);
  }
  void note(ZeromqPeer peer, const std::string& what) {
    events.push_back(std::to_string(number_of(peer)) + " " + what);
  }
  int number_of(ZeromqPeer peer) {
    const auto found = std::find(peers_.begin(), peers_.end(), peer);
    if (found != peers_.end()) return static_cast<int>(found - peers_.begin()) + 1;
    peers_.push_back(peer);
    return static_cast<int>(peers_.size());
  }

  std::vector<ZeromqPeer> peers_;
};

}  // namespace millrace::test
