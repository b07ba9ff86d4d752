// SPDX-License-Identifier: Apache-2.0
#include "transport/session_scope.h"

#include <boost/asio/co_spawn.hpp>
#include <cassert>
#include <utility>

namespace millrace {
namespace {

constexpr std::chrono::milliseconds sweep_period{250};

}  // namespace

// A task, from its start until it has returned or was destroyed unfinished.
class SessionScope::Running {
 public:
  explicit Running(SessionScope& scope) : scope_(&scope) { ++scope_->running_; }
  Running(Running&& other) noexcept : scope_(std::exchange(other.scope_, nullptr)) {}
  ~Running() {
    if (!scope_) return;
    --scope_->running_;
    scope_->ended_.notify();
  }

  void operator()(std::exception_ptr thrown) const {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const std::exception& failure) {
      scope_->report(failure);
    }
  }

 private:
  SessionScope* scope_;
};

SessionScope::SessionScope(Executor executor, const ConnectionLimits& limits, DoorStats& stats,
                           Report report)
    : executor_(executor),
      limits_(limits),
      stats_(stats),
      report_(std::move(report)),
      sweeps_(executor),
      ended_(executor) {}

SessionScope::~SessionScope() { assert(running_ == 0 && watched_.empty()); }

SessionScope::Watched::Watched(SessionScope& scope) : scope_(scope), place_(scope.watched_.size()) {
  scope_.watched_.push_back(this);
}

SessionScope::Watched::~Watched() {
  scope_.watched_[place_] = scope_.watched_.back();
  scope_.watched_[place_]->place_ = place_;
  scope_.watched_.pop_back();
}

Duration SessionScope::about(Duration time) {
  return time * std::uniform_int_distribution(900, 1100)(random_) / 1000;
}

void SessionScope::spawn(Task<> session) {
  net::co_spawn(executor_, std::move(session), Running(*this));
}

void SessionScope::report(const std::exception& failure) {
  if (report_) report_(failure.what());
}

void SessionScope::sweep(Time now) {
  for (Watched* watched : watched_) {
    try {
      watched->check(now);
    } catch (const std::exception& failure) {
      report(failure);
      watched->fail();
    }
  }
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
