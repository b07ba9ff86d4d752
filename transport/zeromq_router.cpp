// SPDX-License-Identifier: Apache-2.0
#include "transport/zeromq_router.h"

#include <array>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <string>
#include <utility>
#include <zmq.hpp>

#include "base/ring.h"
#include "transport/zeromq_bind.h"
#include "transport/zeromq_connections.h"
#include "transport/zeromq_peers.h"
#include "transport/zeromq_socket.h"

namespace millrace {

namespace {

constexpr unsigned messages_per_turn = 256;
// ours, the monitor's two ends, the gate's, and those that libzmq wants for itself
constexpr int sockets = 8;
constexpr auto sweep = std::chrono::milliseconds(200);
// What may come of one message beside it: the answers to heartbeats of many hours among it.
constexpr std::uint64_t beside_a_message = 256 * 1024;
// While somebody has no room or is gone, libzmq tells of no change: what it has to say of a peer
// may be taken in by a send to another, and then no descriptor tells of it. So it is asked.
constexpr auto second_look = std::chrono::milliseconds(10);

zmq_msg_t* part(ZeromqMessage& message) { return static_cast<zmq_msg_t*>(message.handle()); }

// Where libzmq keeps the descriptor of a message's connection, as text.
const char* origin_of(ZeromqMessage& message) { return zmq_msg_gets(part(message), "__fd"); }

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
        waits_{Wait(executor), Wait(executor), Wait(executor)},
        timer_(executor) {
    bind(socket_, binding);
  }
  ~Bound() {
    for (Wait& wait : waits_)
      if (wait.is_open()) wait.release();  // libzmq closes them
  }

  void start(ZeromqSink& sink) {
    sink_ = &sink;
    const auto watch = [this](Wait& wait, zmq::socket_t& socket, void (Bound::*take)()) {
      wait.assign(socket.get(zmq::sockopt::fd));
      wait_for(wait, take);
      (this->*take)();
    };
    watch(waits_[0], connections_.asked(), &Bound::let_in);
    watch(waits_[1], connections_.events(), &Bound::follow_connections);
    watch(waits_[2], socket_, &Bound::take_messages);
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
      blocked_.push_back(id);
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
  using Wait = net::posix::basic_stream_descriptor<Executor>;
  using Peer = ZeromqPeers::Peer;

  // A descriptor of libzmq tells of news once: who is told takes all of it, or comes again.
  void wait_for(Wait& wait, void (Bound::*take)()) {
    wait.async_wait(Wait::wait_read, [this, &wait, take](boost::system::error_code cancelled) {
      if (cancelled) return;
      try {
        (this->*take)();
      } catch (...) {
        wait_for(wait, take);
        throw;
      }
      wait_for(wait, take);
    });
  }

  // A send may have taken in the news that the descriptor would have told. To ask libzmq whether
  // there is some (ZMQ_EVENTS) would cost as much, and make it forget whose the next message is.
  void look_again() {
    if (std::exchange(due_, true)) return;
    net::post(executor_, [this] {
      due_ = false;
      take_messages();
    });
  }

  bool is_unsettled() const {
    return !blocked_.empty() || !ended_.empty() || connections_.is_unsettled();
  }

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
      peers_.end(connection, [this](Peer& peer) { note_ended(peer); });
    if (!turning_ && is_unsettled()) look_again();
    set_timer();
  }
  void note_ended(Peer& peer) {
    if (!std::exchange(peer.ended, true)) ended_.push_back(peer.id);
  }

  void take_messages() {
    const Turning turn(turning_);
    find_unreachable();
    const bool all = receive_some();
    if (!all) look_again();
    forget_unreachable(all);
    look_after_connections(all);
    follow_ended();
    offer_room();
    if (std::exchange(sent_, false)) look_again();
    set_timer();
  }

  // Those among the ended that libzmq takes nothing more for: what they sent is all there to be
  // received.
  void find_unreachable() {
    for (std::size_t left = ended_.size(); left > 0; --left) {
      Peer* const peer = peers_.find(ended_.pop_front());
      if (!peer) continue;
      peer->gone = try_send(*peer, [] { return ZeromqMessage(); }) == Sent::gone;
      peer->heard_at = received_;
      (peer->gone ? unreachable_ : ended_).push_back(peer->id);
    }
  }

  // libzmq gives out messages of all connections in turn. So whoever has one is heard before more
  // than these were.
  std::uint64_t round() const { return peers_.size() + connections_.size(); }

  // What they sent was given out.
  void forget_unreachable(bool all) {
    for (std::size_t left = unreachable_.size(); left > 0; --left) {
      const Peer* const peer = peers_.find(unreachable_.pop_front());
      if (!peer) continue;
      if (all || received_ - peer->heard_at > round())
        forget(peer->id);
      else
        unreachable_.push_back(peer->id);
    }
  }

  void look_after_connections(bool all) {
    if (all) connections_.settle();
    const Time now = Clock::now();
    if (now < sweep_at_ || !(all || received_ - swept_at_ > round())) return;
    sweep_at_ = now + sweep;
    swept_at_ = received_;
    connections_.cut_endless(longest_);
    if (all) connections_.cut_silent(now - greeting_);
  }

  // False where there may be more.
  bool receive_some() {
    for (unsigned i = 0; i < messages_per_turn; ++i) {
      ZeromqMessage name, body;
      if (!zeromq::receive(socket_, part(name))) return true;
      unsigned parts = 0;
      for (bool more = zmq_msg_more(part(name)) != 0; more; more = zmq_msg_more(part(body)) != 0) {
        if (!zeromq::receive(socket_, part(body))) break;  // no: they come together
        ++parts;
      }
      ++received_;
      give(peer_of(name), std::move(body), parts);
    }
    return false;
  }

  void give(Peer& peer, ZeromqMessage message, unsigned parts) {
    if (peer.cut) return;
    peer.told = true;
    if (parts == 1) return sink_->received(peer.id, std::move(message));
    stats_.malformed.add();
    sink_->malformed(peer.id);
  }

  Peer& peer_of(ZeromqMessage& name) {
    const char* const origin = origin_of(name);
    if (Peer* const peer = peers_.named(name.text())) {
      // Nothing: of a message that libzmq held back for want of room. No peer's first one is.
      if (!origin || peer->origin == origin) return heard(*peer);
      forget(peer->id);  // its name is given again only after all that it sent
    }
    follow_connections();  // who had its descriptor before is gone
    const auto connection = connections_.heard(name);
    Peer& peer = peers_.add(std::move(name), origin, connection);
    if (!connection) note_ended(peer);
    return heard(peer);
  }
  Peer& heard(Peer& peer) {
    peer.heard_at = received_;
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
    ZeromqMessage name = ZeromqMessage::copy_of(peer.first.bytes());
    if (const int error = zeromq::send(socket_, part(name), ZMQ_SNDMORE))
      return error == EAGAIN ? Sent::full : Sent::gone;
    // As the first part went, so does this. There must be one.
    ZeromqMessage body;
    try {
      body = message();
    } catch (...) {
      (void)zeromq::send(socket_, part(body), 0);
      throw;
    }
    (void)zeromq::send(socket_, part(body), 0);
    return Sent::taken;
  }

  // Once each, whatever they answer, and not at every turn: there may be many.
  void offer_room() {
    const Time now = Clock::now();
    if (blocked_.empty() || now < offer_at_) return;
    offer_at_ = now + second_look;
    for (std::size_t left = blocked_.size(); left > 0; --left) {
      Peer* const peer = peers_.find(blocked_.pop_front());
      if (!peer) continue;
      peer->blocked = false;
      if (!peer->cut) sink_->writable(peer->id);
    }
  }

  void set_timer() {
    if (!is_unsettled() && connections_.size() == 0) return;
    const Time due = Clock::now() + (is_unsettled() ? Duration(second_look) : Duration(sweep));
    if (due >= timer_at_) return;
    timer_at_ = due;
    timer_.expires_at(due);
    timer_.async_wait([this](boost::system::error_code cancelled) {
      if (cancelled) return;
      timer_at_ = Time::max();
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
  std::array<Wait, 3> waits_;
  Timer timer_;
  Time timer_at_ = Time::max();
  Time sweep_at_{}, offer_at_{};
  std::uint64_t received_ = 0;  // messages
  std::uint64_t swept_at_ = 0;  // when there were so many
  bool due_ = false;            // a look is on its way
  bool turning_ = false;        // one is being taken
  bool sent_ = false;           // something, meanwhile

  ZeromqPeers peers_;
  Ring<ZeromqPeer> blocked_, ended_, unreachable_;
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
