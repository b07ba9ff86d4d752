// SPDX-License-Identifier: Apache-2.0
#include "transport/session_scope.h"

#include <boost/asio/co_spawn.hpp>
#include <cassert>
#include <exception>

namespace millrace {
namespace {

constexpr std::chrono::milliseconds sweep_period{250};

}  // namespace

SessionScope::SessionScope(Executor executor, const ConnectionLimits& limits, DoorStats& stats)
    : executor_(executor), limits_(limits), stats_(stats), sweeps_(executor), ended_(executor) {}

SessionScope::~SessionScope() { assert(running_ == 0 && watched_.empty()); }

SessionScope::Watched::Watched(SessionScope& scope) : scope_(scope), place_(scope.watched_.size()) {
  scope_.watched_.push_back(this);
}

SessionScope::Watched::~Watched() {
  scope_.watched_[place_] = scope_.watched_.back();
  scope_.watched_[place_]->place_ = place_;
  scope_.watched_.pop_back();
}

void SessionScope::spawn(Task<> session) {
  ++running_;
  net::co_spawn(executor_, std::move(session), [this](std::exception_ptr thrown) {
    if (thrown) stats_.closed[Closing::internal].add();
    --running_;
    ended_.notify();
  });
}

void SessionScope::sweep(Time now) {
  for (Watched* watched : watched_) watched->check(now);
}

void SessionScope::start() { spawn(sweep_periodically()); }

Task<> SessionScope::sweep_periodically() {
  sweeping_ = true;
  while (!joined_) {
    sweeps_.expires_after(sweep_period);
    co_await sweeps_.async_wait(no_throw);
    sweep(Clock::now());
  }
  sweeping_ = false;
}

void SessionScope::drain() {
  draining_ = true;
  for (Watched* watched : watched_) watched->drain();
}

void SessionScope::stop() {
  for (Watched* watched : watched_) watched->abort();
}

Task<> SessionScope::join() {
  // Time limits hold to the end: a client that answers no close must not hold up the others.
  while (running_ > (sweeping_ ? 1 : 0)) co_await ended_.wait();
  joined_ = true;
  sweeps_.cancel();
  while (running_ > 0) co_await ended_.wait();
}

}  // namespace millrace
