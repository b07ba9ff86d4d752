// SPDX-License-Identifier: Apache-2.0
#include "transport/zeromq_server.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <exception>
#include <utility>

namespace millrace {

namespace {

// Of a message around the frames or options in it, so that `limits.message` is what it says.
constexpr std::size_t envelope = 8 * 1024;

ZeromqBinding binding_of(const std::string& endpoint, const ConnectionLimits& limits) {
  ZeromqBinding binding;
  binding.endpoint = endpoint;
  binding.max_message = binding.max_first = limits.message + envelope;
  binding.times.message = limits.assembly;
  return binding;
}

MessageFault fault_of(WireError error) {
  switch (error) {
    case WireError::too_long: return MessageFault::size;
    case WireError::malformed: return MessageFault::verify;
    default: return MessageFault::schema;
  }
}

std::string_view text_of(WireError error) {
  switch (error) {
    case WireError::too_long: return "a message that is too long";
    case WireError::malformed: return "not a message of the protocol";
    case WireError::unknown: return "not a message for a service";
    default: return "a message with a value that cannot be";
  }
}

}  // namespace

// A peer and the way to it.
class ZeromqServer::Peer final : public PeerWire {
 public:
  Peer(ZeromqServer& server, ZeromqPeer id)
      : server_(server), id_(id), client_(*this, server.place_, Clock::now()) {}

  ClientPeer& client() { return client_; }

  Sent send(Bytes message) override {
    switch (server_.router_.send(id_, message)) {
      case ZeromqRouter::Sent::taken: return Sent::taken;
      case ZeromqRouter::Sent::full: return Sent::full;
      default: return Sent::gone;
    }
  }
  void wake() override { server_.wake(id_); }
  void cut() override { server_.router_.cut(id_); }

 private:
  ZeromqServer& server_;
  const ZeromqPeer id_;
  ClientPeer client_;
};

ZeromqServer::ZeromqServer(SessionScope& scope, const std::string& endpoint, Door& door,
                           Budget& sockets)
    : Watched(scope),
      scope_(scope),
      decoder_(scope.limits().message + envelope),
      place_{door, encoder_, scope.limits(), stats_},
      ended_(scope.executor()),
      router_(scope.executor(), binding_of(endpoint, scope.limits()), sockets, socket_stats_) {}

ZeromqServer::~ZeromqServer() = default;

void ZeromqServer::start() {
  scope_.spawn(run());
  router_.start(*this);
}

// Holds up the end of its scope.
Task<> ZeromqServer::run() {
  const auto is_idle = [](const auto& one) { return one.second->client().streams() == 0; };
  while (!aborted_ && !(draining_ && std::ranges::all_of(peers_, is_idle))) co_await ended_.wait();
}

void ZeromqServer::received(ZeromqPeer id, ZeromqMessage message) {
  if (aborted_) return;
  const Time arrived = Clock::now();
  stats_.received.add(message.bytes().size());
  Peer& from = peer(id);
  const auto said = decoder_.to_service(message.bytes());
  stats_.parse.observe(Clock::now() - arrived);
  guard(from, [&] {
    if (said)
      from.client().received(*said, arrived);
    else
      from.client().malformed(fault_of(said.error()), text_of(said.error()), arrived);
  });
}

void ZeromqServer::malformed(ZeromqPeer id) {
  if (aborted_) return;
  Peer& from = peer(id);
  guard(from, [&] {
    from.client().malformed(MessageFault::schema, "a message of more than one part", Clock::now());
  });
}

void ZeromqServer::writable(ZeromqPeer id) { wake(id); }

void ZeromqServer::lost(ZeromqPeer id) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return;
  ClientPeer& client = found->second->client();
  stats_.closed[client.ending().value_or(Closing::client)].add();
  client.lost(Clock::now());
  peers_.erase(found);
  stats_.connections.add(-1);
  note_end();
}

ZeromqServer::Peer& ZeromqServer::peer(ZeromqPeer id) {
  std::unique_ptr<Peer>& place = peers_[id];
  if (!place) {
    place = std::make_unique<Peer>(*this, id);
    stats_.opened.add();
    stats_.connections.add(1);
  }
  return *place;
}

// Once for all that is said in a turn, to however many.
void ZeromqServer::wake(ZeromqPeer id) {
  if (woken_.empty()) net::post(scope_.executor(), [this] { flush_woken(); });
  woken_.push_back(id);
}

void ZeromqServer::flush_woken() {
  flushing_.clear();
  std::swap(flushing_, woken_);
  const Time now = Clock::now();
  for (const ZeromqPeer id : flushing_) {
    const auto found = peers_.find(id);
    if (found != peers_.end()) guard(*found->second, [&] { found->second->client().flush(now); });
  }
  note_end();
}

// What fails for want of memory costs the peer it happened to, and nobody else.
template <class Work>
void ZeromqServer::guard(Peer& peer, Work work) {
  try {
    work();
  } catch (const std::exception& failure) {
    scope_.report(failure);
    peer.client().fail();
    peer.cut();
  }
}

void ZeromqServer::check(Time now) {
  for (auto& [id, peer] : peers_) guard(*peer, [&] { peer->client().check(now); });
  note_end();
}

void ZeromqServer::drain() {
  draining_ = true;
  note_end();
}

void ZeromqServer::abort() {
  aborted_ = true;
  for (auto& [id, peer] : peers_) {
    stats_.closed[Closing::drain].add();
    // Of whose streams are over, the last words may still be on their way: those the router brings
    // out.
    const bool cut = peer->client().streams() > 0;
    peer->client().lost(Clock::now());
    if (cut) peer->cut();
  }
  stats_.connections.set(0);
  peers_.clear();
  ended_.notify();
}

void ZeromqServer::note_end() {
  if (draining_) ended_.notify();
}

}  // namespace millrace
