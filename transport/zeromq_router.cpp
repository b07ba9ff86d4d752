// SPDX-License-Identifier: Apache-2.0
#include "transport/zeromq_router.h"

#include <boost/asio/post.hpp>
#include <string>
#include <utility>
#include <zmq.hpp>

#include "transport/zeromq_bind.h"
#include "transport/zeromq_connections.h"
#include "transport/zeromq_peers.h"
#include "transport/zeromq_schedule.h"
#include "transport/zeromq_socket.h"
#include "transport/zeromq_watch.h"

namespace millrace {
namespace {

constexpr unsigned messages_per_turn = 256;
constexpr int sockets = 8;  // ours, the monitor's two ends, the gate's, and libzmq's own
// What may come of one message beside it: the answers to heartbeats of many hours among it.
constexpr std::uint64_t beside_a_message = 256 * 1024;

}  // namespace

class ZeromqRouter::Bound {
 public:
  Bound(Executor executor, const ZeromqBinding& binding, Budget& connections, ZeromqStats& stats)
      : executor_(executor),
        greeting_(binding.times.greeting),
        longest_(binding.max_message + beside_a_message),
        stats_(stats),
        context_(1, sockets),
        socket_(context_, zmq::socket_type::router),
        connections_(context_, socket_, connections, stats),
        asked_(executor),
        events_(executor),
        messages_(executor),
        timer_(executor) {
    bind(socket_, binding);
  }

  void start(ZeromqSink& sink) {
    sink_ = &sink;
    asked_.start(connections_.asked(), [this] { let_in(); });
    events_.start(connections_.events(), [this] { follow_connections(); });
    messages_.start(socket_, [this] { take_messages(); });
  }

  // `message` gives the message when there is room for it.
  template <class Message>
  Sent send(ZeromqPeer id, Message message) {
    Peer* const peer = peers_.find(id);
    if (!peer || peer->cut || peer->gone) return Sent::gone;
    if (peer->blocked) return Sent::full;
    const Sent sent = try_send(*peer, message);
    if (sent == Sent::full) {
      if (!std::exchange(peer->was_blocked, true)) stats_.would_block.add();
      peer->blocked = true;
      schedule_.full(id);
    } else {
      peer->was_blocked = false;
    }
    if (turning_)
      sent_ |= sent == Sent::taken;
    else
      look_again();
    return sent;
  }

  void cut(ZeromqPeer id) {
    Peer* const peer = peers_.find(id);
    if (!peer || std::exchange(peer->cut, true)) return;
    connections_.cut(peer->connection);
    follow_connections();
  }

  std::uint16_t port() const {
    const std::string endpoint = socket_.get(zmq::sockopt::last_endpoint);
    return static_cast<std::uint16_t>(std::stoul(endpoint.substr(endpoint.rfind(':') + 1)));
  }

 private:
  using Peer = ZeromqPeers::Peer;

  // A send may have taken in the news that the descriptor would have told. To ask libzmq whether
  // there is some (ZMQ_EVENTS) would cost as much, and make it forget whose the next message is.
  void look_again() {
    if (due_) return;
    net::post(executor_, [this] {
      due_ = false;
      take_messages();
    });
    due_ = true;
  }

  bool is_unsettled() const { return schedule_.is_unsettled() || connections_.is_unsettled(); }

  void let_in() {
    connections_.answer(Clock::now());
    follow_ended();
  }
  void follow_connections() {
    connections_.read(Clock::now());
    follow_ended();
  }
  void follow_ended() {
    for (const ZeromqConnections::Id connection : connections_.take_ended())
      peers_.end(connection, [this](const Peer& peer) { schedule_.ended(peer.id); });
    if (!turning_ && is_unsettled()) look_again();
    set_timer();
  }

  // After one that failed libzmq need not tell of what is left, and what failed may fail again: the
  // timer looks.
  void take_messages() {
    try {
      take_turn();
    } catch (...) {
      arm(true);
      throw;
    }
  }
  void take_turn() {
    const Turning turning(turning_);
    schedule_.find_unreachable([this](ZeromqPeer id) { return is_unreachable(id); });
    const bool all = receive_some();
    if (!all) look_again();
    const ZeromqSchedule::Turn turn{all, peers_.size() + connections_.size()};
    schedule_.forget_unreachable(turn, [this](ZeromqPeer id) { forget(id); });
    look_after_connections(turn);
    follow_ended();
    schedule_.offer_room(Clock::now(), [this](ZeromqPeer id) { offer_room(id); });
    if (std::exchange(sent_, false)) look_again();
    set_timer();
  }

  bool is_unreachable(ZeromqPeer id) {
    Peer* const peer = peers_.find(id);
    if (peer) peer->gone = try_send(*peer, [] { return ZeromqMessage(); }) == Sent::gone;
    return !peer || peer->gone;
  }

  void look_after_connections(const ZeromqSchedule::Turn& turn) {
    if (turn.all) connections_.settle();
    if (!schedule_.sweeps(Clock::now(), turn)) return;
    connections_.cut_endless(longest_);
    if (turn.all) connections_.cut_silent(Clock::now() - greeting_);
  }

  // False where there may be more.
  bool receive_some() {
    for (unsigned i = 0; i < messages_per_turn; ++i) {
      ZeromqMessage name, body;
      const unsigned parts = zeromq::receive_from(socket_, name, body);
      if (parts == 0) return true;
      give(peer_of(name), std::move(body), parts);
    }
    return false;
  }

  void give(Peer& peer, ZeromqMessage message, unsigned parts) {
    if (peer.cut) return;
    peer.told = true;
    if (parts == 2) return sink_->received(peer.id, std::move(message));
    stats_.malformed.add();
    sink_->malformed(peer.id);
  }

  Peer& peer_of(ZeromqMessage& name) {
    if (Peer* const peer = peers_.speaker(name)) return heard(*peer);
    // Who had the name is heard no more: it is given again only after all that it sent.
    if (const Peer* const before = peers_.named(name.text())) forget(before->id);
    follow_connections();  // who had its descriptor before is gone
    const auto connection = connections_.heard(name);
    Peer& peer = peers_.add(std::move(name), connection);
    if (!connection) schedule_.ended(peer.id);
    return heard(peer);
  }
  Peer& heard(Peer& peer) {
    schedule_.heard(peer.id);
    connections_.spoke(peer.connection);
    return peer;
  }

  void forget(ZeromqPeer id) {
    Peer* const peer = peers_.find(id);
    if (!peer) return;
    const bool told = peer->told;
    peers_.remove(id);
    if (told) sink_->lost(id);
  }

  template <class Message>
  Sent try_send(const Peer& peer, Message message) {
    const int error = zeromq::send_to(socket_, ZeromqMessage::copy_of(peer.first.bytes()), message);
    return error == 0 ? Sent::taken : error == EAGAIN ? Sent::full : Sent::gone;
  }

  void offer_room(ZeromqPeer id) {
    Peer* const peer = peers_.find(id);
    if (peer) peer->blocked = false;
    if (peer && !peer->cut) sink_->writable(id);
  }

  void set_timer() {
    if (is_unsettled() || connections_.size() > 0) arm(is_unsettled());
  }
  void arm(bool unsettled) {
    const auto due = schedule_.alarm(Clock::now(), unsettled);
    if (!due) return;
    try {
      wait_until(*due);
    } catch (...) {
      schedule_.went_off();  // or it would be waited for, and never come
      throw;
    }
  }
  void wait_until(Time due) {
    timer_.expires_at(due);
    timer_.async_wait([this](boost::system::error_code cancelled) {
      if (cancelled) return;
      schedule_.went_off();
      take_messages();
    });
  }

  // While it lives, sends need not look for what they took in: the turn does.
  class Turning {
   public:
    explicit Turning(bool& turning) : turning_(turning) { turning_ = true; }
    ~Turning() { turning_ = false; }

   private:
    bool& turning_;
  };

  const Executor executor_;
  const Duration greeting_;
  const std::uint64_t longest_;  // that a message may have come to before it ends, in bytes
  ZeromqStats& stats_;
  ZeromqSink* sink_ = nullptr;

  zmq::context_t context_;
  zmq::socket_t socket_;
  ZeromqConnections connections_;
  ZeromqPeers peers_;
  ZeromqSchedule schedule_;
  ZeromqWatch asked_, events_, messages_;
  Timer timer_;
  bool due_ = false;      // a look is on its way
  bool turning_ = false;  // one is being taken
  bool sent_ = false;     // something, meanwhile
};

ZeromqRouter::ZeromqRouter(Executor executor, const ZeromqBinding& binding, Budget& connections,
                           ZeromqStats& stats)
    : bound_(std::make_unique<Bound>(executor, binding, connections, stats)) {}
ZeromqRouter::~ZeromqRouter() = default;

void ZeromqRouter::start(ZeromqSink& sink) { bound_->start(sink); }
ZeromqRouter::Sent ZeromqRouter::send(ZeromqPeer peer, ZeromqMessage& message) {
  return bound_->send(peer, [&] { return std::move(message); });
}
ZeromqRouter::Sent ZeromqRouter::send(ZeromqPeer peer, Bytes message) {
  return bound_->send(peer, [&] { return ZeromqMessage::copy_of(message); });
}
void ZeromqRouter::cut(ZeromqPeer peer) { bound_->cut(peer); }
std::uint16_t ZeromqRouter::port() const { return bound_->port(); }

}  // namespace millrace
