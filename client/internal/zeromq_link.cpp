// SPDX-License-Identifier: Apache-2.0
#include "client/internal/zeromq_link.h"

#include <boost/asio/post.hpp>
#include <exception>
#include <list>
#include <utility>

#include "base/ring.h"
#include "transport/net/limits.h"
#include "transport/net/peer_address.h"
#include "transport/net/socket_waits.h"
#include "transport/net/spawn.h"

namespace millrace {
namespace {

using State = ZeromqDealer::State;

}  // namespace

class ZeromqLink::Connection {
 public:
  using Self = std::shared_ptr<Connection>;

  Connection(Executor executor, ServiceUrl service, Duration limit, Duration silence,
             std::function<void()> turn)
      : executor_(executor),
        service_(std::move(service)),
        silence_(silence),
        turn_(std::move(turn)),
        resolver_(executor),
        deadline_(Clock::now() + limit),
        attempt_deadline_(deadline_),
        timer_(executor) {}

  static Task<> connect(Self self) {
    const auto [error, found] =
        co_await self->resolver_.async_resolve(self->service_.host, self->service_.port, no_throw);
    if (self->closed_) co_return;
    if (error) co_return end(self, error.message());
    for (const auto& entry : found) self->endpoints_.push_back(entry.endpoint());
    connect_next(self);
  }

  // Each address gets an equal share of the remaining time.
  static Task<> enforce_limit(Self self) {
    while (!self->closed_ && self->state_ == State::connecting) {
      self->timer_.expires_at(self->attempt_deadline_);
      const auto [changed] = co_await self->timer_.async_wait(no_throw);
      if (changed || self->closed_ || self->state_ != State::connecting) continue;
      if (self->endpoints_.empty())
        end(self, "the service does not answer");
      else
        connect_next(self);
    }
  }

  void close() {
    closed_ = true;
    resolver_.cancel();
    timer_.cancel();
    disconnect();
  }

  // Tries the addresses of the host one after another.
  State process_events(const Self& self) {
    if (!dealer_ || state_ == State::ended) return state_;
    const State before = std::exchange(state_, dealer_->process_events());
    if (before == State::connecting && state_ == State::ended && !endpoints_.empty()) {
      state_ = State::connecting;
      connect_next(self);
    } else if (state_ == State::ended) {
      reason_ = with_address(dealer_->reason());
    }
    return state_;
  }

  const std::string& reason() const { return reason_; }
  std::optional<ZeromqMessage> receive() { return dealer_ ? dealer_->receive() : std::nullopt; }
  bool send(Bytes message) { return dealer_ && dealer_->send(message); }

  void schedule_turn(const Self& self, bool to_receive, bool to_send) {
    if (dealer_ && dealer_->has_events(to_receive, to_send)) post_turn(self);
  }

 private:
  static void connect_next(const Self& self) {
    Connection& link = *self;
    link.disconnect();
    try {
      const Time now = Clock::now();
      link.attempt_deadline_ =
          now + (link.deadline_ - now) / static_cast<int>(link.endpoints_.size());
      link.timer_.cancel();
      const Tcp::endpoint endpoint = link.endpoints_.pop_front();
      link.dealer_.emplace("tcp://" + text_of(endpoint), max_service_message, link.silence_);
      for (const int descriptor : link.dealer_->descriptors()) {
        SocketWaits& waits = link.waits_.emplace_back(link.executor_, descriptor);
        spawn(link.executor_, watch(self, waits, link.attempt_));
      }
    } catch (const std::exception& failure) {  // no memory or descriptor
      end(self, failure.what());
    }
  }

  // `waits` lives as long as the attempt.
  static Task<> watch(Self self, SocketWaits& waits, unsigned attempt) {
    while (attempt == self->attempt_) {
      const bool readable = co_await waits.readable();
      if (!readable) co_return;
      if (attempt == self->attempt_) self->turn();
    }
  }

  static void end(const Self& self, const std::string& reason) {
    self->disconnect();
    self->state_ = State::ended;
    self->reason_ = self->with_address(reason);
    post_turn(self);
  }

  static void post_turn(const Self& self) {
    if (std::exchange(self->turn_is_due_, true)) return;
    net::post(self->executor_, [self] {
      self->turn_is_due_ = false;
      self->turn();
    });
  }

  void turn() {
    if (!closed_) turn_();
  }
  void disconnect() {
    ++attempt_;
    waits_.clear();
    dealer_.reset();
  }
  std::string with_address(const std::string& reason) const {
    return service_.host + ":" + service_.port + ": " + reason;
  }

  const Executor executor_;
  const ServiceUrl service_;
  const Duration silence_;
  const std::function<void()> turn_;
  Resolver resolver_;
  const Time deadline_;    // for the attempts to all addresses
  Time attempt_deadline_;  // for the attempt to the current address
  Timer timer_;
  Ring<Tcp::endpoint> endpoints_;  // addresses that were not tried yet
  State state_ = State::connecting;
  std::string reason_;
  bool closed_ = false;
  bool turn_is_due_ = false;
  unsigned attempt_ = 0;  // number of the connection attempt; the members below belong to it
  std::optional<ZeromqDealer> dealer_;
  std::list<SocketWaits> waits_;  // for the dealer's descriptors
};

ZeromqLink::ZeromqLink(Executor executor, ServiceUrl service, Duration limit, Duration silence,
                       std::function<void()> turn)
    : connection_(std::make_shared<Connection>(executor, std::move(service), limit, silence,
                                               std::move(turn))) {
  spawn(executor, Connection::connect(connection_));
  spawn(executor, Connection::enforce_limit(connection_));
}
ZeromqLink::~ZeromqLink() { connection_->close(); }

State ZeromqLink::process_events() { return connection_->process_events(connection_); }
const std::string& ZeromqLink::reason() const { return connection_->reason(); }
std::optional<ZeromqMessage> ZeromqLink::receive() { return connection_->receive(); }
bool ZeromqLink::send(Bytes message) { return connection_->send(message); }
void ZeromqLink::schedule_turn(bool to_receive, bool to_send) {
  connection_->schedule_turn(connection_, to_receive, to_send);
}

}  // namespace millrace
