// SPDX-License-Identifier: Apache-2.0
#include "client/internal/zeromq_link.h"

#include <array>
#include <boost/asio/post.hpp>
#include <exception>
#include <list>
#include <utility>

#include "base/ring.h"
#include "transport/net/limits.h"
#include "transport/net/socket_waits.h"
#include "transport/net/spawn.h"

namespace millrace {
namespace {

using State = ZeromqDealer::State;

std::string endpoint_of(const Tcp::endpoint& place) {
  const std::string address = place.address().to_string();
  return "tcp://" + (place.address().is_v6() ? "[" + address + "]" : address) + ":" +
         std::to_string(place.port());
}

}  // namespace

class ZeromqLink::Waiting {
 public:
  using Self = std::shared_ptr<Waiting>;

  Waiting(Executor executor, ServiceUrl service, Duration limit, Duration silence,
          std::function<void()> turn)
      : executor_(executor),
        service_(std::move(service)),
        silence_(silence),
        turn_(std::move(turn)),
        resolver_(executor),
        end_(Clock::now() + limit),
        due_(end_),
        limit_(executor) {}

  static Task<> connect(Self self) {
    const auto [error, found] =
        co_await self->resolver_.async_resolve(self->service_.host, self->service_.port, no_throw);
    if (self->let_go_) co_return;
    if (error) co_return end(self, error.message());
    for (const auto& place : found) self->places_.push_back(place.endpoint());
    connect_next(self);
  }

  // Each place has its part of the time that is left.
  static Task<> keep_to(Self self) {
    while (!self->let_go_ && self->state_ == State::connecting) {
      self->limit_.expires_at(self->due_);
      const auto [changed] = co_await self->limit_.async_wait(no_throw);
      if (changed || self->let_go_ || self->state_ != State::connecting) continue;
      if (self->places_.empty())
        end(self, "it does not answer");
      else
        connect_next(self);
    }
  }

  void let_go() {
    let_go_ = true;
    resolver_.cancel();
    limit_.cancel();
    hang_up();
  }

  // The places of a name are tried one after another.
  State follow(const Self& self) {
    if (!dealer_ || state_ == State::ended) return state_;
    const State before = std::exchange(state_, dealer_->follow());
    if (before == State::connecting && state_ == State::ended && !places_.empty()) {
      state_ = State::connecting;
      connect_next(self);
    } else if (state_ == State::ended) {
      reason_ = named(dealer_->reason());
    }
    return state_;
  }

  const std::string& reason() const { return reason_; }
  std::optional<ZeromqMessage> receive() { return dealer_ ? dealer_->receive() : std::nullopt; }
  bool send(Bytes message) { return dealer_ && dealer_->send(message); }

  void look_again(const Self& self, bool to_receive, bool to_send) {
    if (dealer_ && dealer_->is_news(to_receive, to_send)) post_turn(self);
  }

 private:
  static void connect_next(const Self& self) {
    Waiting& link = *self;
    link.hang_up();
    try {
      const Time now = Clock::now();
      link.due_ = now + (link.end_ - now) / static_cast<int>(link.places_.size());
      link.limit_.cancel();
      const Tcp::endpoint place = link.places_.pop_front();
      link.dealer_.emplace(endpoint_of(place), longest_told, link.silence_);
      for (const int descriptor : link.dealer_->descriptors()) {
        SocketWaits& waits = link.waits_.emplace_back(link.executor_, descriptor);
        spawn(link.executor_, watch(self, waits, link.attempt_));
      }
    } catch (const std::exception& failure) {  // of memory or descriptors
      end(self, failure.what());
    }
  }

  // `waits` live as long as the attempt.
  static Task<> watch(Self self, SocketWaits& waits, unsigned attempt) {
    while (attempt == self->attempt_) {
      const bool readable = co_await waits.readable();
      if (!readable) co_return;
      if (attempt == self->attempt_) self->turn();
    }
  }

  static void end(const Self& self, const std::string& reason) {
    self->hang_up();
    self->state_ = State::ended;
    self->reason_ = self->named(reason);
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
    if (!let_go_) turn_();
  }
  void hang_up() {
    ++attempt_;
    waits_.clear();
    dealer_.reset();
  }
  std::string named(const std::string& reason) const {
    return service_.host + ":" + service_.port + ": " + reason;
  }

  const Executor executor_;
  const ServiceUrl service_;
  const Duration silence_;
  const std::function<void()> turn_;
  Resolver resolver_;
  const Time end_;  // of all the time there is to connect
  Time due_;        // of what the place that is tried has of it
  Timer limit_;
  Ring<Tcp::endpoint> places_;  // that were not tried yet
  State state_ = State::connecting;
  std::string reason_;
  bool let_go_ = false;
  bool turn_is_due_ = false;
  unsigned attempt_ = 0;  // to connect, of which what follows is a part
  std::optional<ZeromqDealer> dealer_;
  std::list<SocketWaits> waits_;  // for the dealer's descriptors
};

ZeromqLink::ZeromqLink(Executor executor, ServiceUrl service, Duration limit, Duration silence,
                       std::function<void()> turn)
    : waiting_(std::make_shared<Waiting>(executor, std::move(service), limit, silence,
                                         std::move(turn))) {
  spawn(executor, Waiting::connect(waiting_));
  spawn(executor, Waiting::keep_to(waiting_));
}
ZeromqLink::~ZeromqLink() { waiting_->let_go(); }

State ZeromqLink::follow() { return waiting_->follow(waiting_); }
const std::string& ZeromqLink::reason() const { return waiting_->reason(); }
std::optional<ZeromqMessage> ZeromqLink::receive() { return waiting_->receive(); }
bool ZeromqLink::send(Bytes message) { return waiting_->send(message); }
void ZeromqLink::look_again(bool to_receive, bool to_send) {
  waiting_->look_again(waiting_, to_receive, to_send);
}

}  // namespace millrace
