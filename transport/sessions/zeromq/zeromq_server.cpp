// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/zeromq/zeromq_server.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <exception>
#include <utility>

#include "transport/net/peer_address.h"

namespace millrace {

namespace {

// Peers, streams and empty buckets of either that are checked at once. A check reads memory
// that is not in the cache, about 0.3 µs.
constexpr std::size_t checked_at_once = 512;

ZeromqBinding with_limits(ZeromqBinding binding, const ConnectionLimits& limits,
                          const ClientGate& gate) {
  binding.max_message = binding.max_first = limits.message + zeromq_envelope;
  binding.times.message = limits.assembly;
  binding.memory_short = &gate.memory_short;
  binding.max_connections = &gate.zeromq_connections;
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
    case WireError::too_long: return "the message is too long";
    case WireError::malformed: return "not a message of the protocol";
    case WireError::unknown: return "not a message that clients send";
    default: return "the message has an invalid value";
  }
}

}  // namespace

// A peer and its wire.
class ZeromqServer::Peer final : public PeerWire {
 public:
  Peer(ZeromqServer& server, ZeromqPeer id)
      : server_(server), id_(id), client_(*this, server.context_, Clock::now()) {}

  ClientPeer& client() { return client_; }
  std::uint64_t round = 0;  // the last round of checks that has checked it

  Sent send(Bytes message) override {
    switch (server_.router_.send(id_, message)) {
      case ZeromqRouter::Sent::accepted: return Sent::accepted;
      case ZeromqRouter::Sent::full: return Sent::full;
      default: return Sent::disconnected;
    }
  }
  std::string address() const override { return server_.router_.address(id_); }
  std::uint64_t acknowledged() const override { return server_.router_.acknowledged(id_); }
  bool empty() const override { return server_.router_.is_written(id_); }
  void wake() override { server_.wake(id_); }
  void cut() override { server_.router_.cut(id_); }

 private:
  ZeromqServer& server_;
  const ZeromqPeer id_;
  ClientPeer client_;
};

ZeromqServer::ZeromqServer(SessionScope& scope, const ZeromqBinding& binding,
                           StreamAdmission& admission, ClientGate& gate)
    : Watched(scope),
      scope_(scope),
      decoder_(scope.limits().message + zeromq_envelope),
      context_{admission, encoder_, scope.limits(), stats_, retry_times_, gate.access},
      ended_(scope.executor()),
      router_(scope.executor(), with_limits(binding, scope.limits(), gate), gate.sockets,
              socket_stats_) {}

ZeromqServer::~ZeromqServer() = default;

void ZeromqServer::start() {
  scope_.spawn(run());
  router_.start(*this);
}

// Keeps the scope from ending. Acknowledgements are no events: the periodic checks notify ended_.
Task<> ZeromqServer::run() {
  while (!aborted_ && !(draining_ && is_idle())) co_await ended_.wait();
}

// If this process ends, a connection may be reset and lose the bytes not yet acknowledged.
bool ZeromqServer::is_idle() const {
  const auto has_no_stream = [](const auto& one) { return one.second->client().streams() == 0; };
  const auto has_all = [this](const auto& one) { return router_.has_all(one.first); };
  return std::ranges::all_of(peers_, has_no_stream) && std::ranges::all_of(peers_, has_all);
}

bool ZeromqServer::received(ZeromqPeer id, ZeromqMessage message, Time arrived) {
  if (aborted_) return false;
  stats_.received.add(message.bytes().size());
  Peer& from = peer(id);
  if (message.bytes().empty()) return false;  // a keepalive; also the probe of ZMQ_PROBE_ROUTER
  const auto decoded = decoder_.to_service(message.bytes());
  stats_.parse.observe(Clock::now() - arrived);
  guard(from, [&] {
    if (decoded)
      from.client().received(*decoded, arrived);
    else
      from.client().malformed(fault_of(decoded.error()), text_of(decoded.error()), arrived);
  });
  return from.client().is_unfinished();
}

bool ZeromqServer::proceed(ZeromqPeer id) {
  const auto found = peers_.find(id);
  if (found == peers_.end() || !found->second->client().is_unfinished()) return false;
  guard(*found->second, [&] { found->second->client().proceed(); });
  return found->second->client().is_unfinished();
}

void ZeromqServer::malformed(ZeromqPeer id) {
  if (aborted_) return;
  Peer& from = peer(id);
  guard(from, [&] {
    from.client().malformed(MessageFault::schema, "a message must have one part", Clock::now());
  });
}

void ZeromqServer::writable(ZeromqPeer id) { wake(id); }

void ZeromqServer::connection_refused(const Tcp::endpoint& peer, Refusal, std::string_view why) {
  scope_.note_refused(peer_text(peer), why);
}

void ZeromqServer::lost(ZeromqPeer id) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return;
  ClientPeer& client = found->second->client();
  stats_.closed[client.ending().value_or(Closing::client)].add();
  client.lost(Clock::now());
  peers_.erase(found);
  stats_.connections.add(-1);
  notify_if_draining();
}

ZeromqServer::Peer& ZeromqServer::peer(ZeromqPeer id) {
  const auto found = peers_.find(id);
  if (found != peers_.end()) return *found->second;
  auto made = std::make_unique<Peer>(*this, id);
  Peer& peer = *peers_.emplace(id, std::move(made)).first->second;
  stats_.opened.add();
  stats_.connections.add(1);
  return peer;
}

// One post() for all peers that are woken before it runs.
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
  notify_if_draining();
}

// A failed allocation ends the peer for which it happened, and no other.
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
  if (checking_) return;
  checked_at_ = now;
  ++round_;
  check_some();
}

// Peers that connect during a round may miss it.
void ZeromqServer::check_some() {
  std::size_t left = checked_at_once;
  const auto subtract = [&](std::size_t checked) { left -= std::min(left, checked); };
  for (; left > 0 && next_bucket_ < peers_.bucket_count(); subtract(1)) {
    auto at = peers_.begin(next_bucket_);
    while (at != peers_.end(next_bucket_) && at->second->round == round_) ++at;
    if (at == peers_.end(next_bucket_)) {
      ++next_bucket_;
      continue;
    }
    Peer& peer = *at->second;
    guard(peer,
          [&] { subtract(peer.client().check_some(checked_at_, std::max<std::size_t>(left, 2))); });
    if (peer.client().is_checked()) peer.round = round_;
  }
  checking_ = next_bucket_ < peers_.bucket_count();
  if (checking_) return continue_check();
  next_bucket_ = 0;
  notify_if_draining();
}

// Continues after the other work of the thread.
void ZeromqServer::continue_check() {
  try {
    net::post(scope_.executor(), [this] { check_some(); });
  } catch (...) {
    checking_ = false;  // the next check() continues from next_bucket_
    throw;
  }
}

void ZeromqServer::drain() {
  draining_ = true;
  notify_if_draining();
}

void ZeromqServer::abort() {
  aborted_ = true;
  for (auto& [id, peer] : peers_) {
    stats_.closed[Closing::drain].add();
    // If the streams of a peer are over, its last messages may be unsent: the router sends them.
    const bool cut = peer->client().streams() > 0;
    peer->client().lost(Clock::now());
    if (cut) peer->cut();
  }
  stats_.connections.set(0);
  peers_.clear();
  ended_.notify();
}

void ZeromqServer::notify_if_draining() {
  if (draining_) ended_.notify();
}

}  // namespace millrace
