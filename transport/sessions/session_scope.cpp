// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/session_scope.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <cassert>
#include <utility>

namespace millrace {
namespace {

constexpr Duration sweep_period = std::chrono::milliseconds(250);
// To look at one is a walk through memory that nobody has in the cache: of thousands, all at once
// would hold up the thread for milliseconds.
constexpr std::size_t swept_at_once = 128;
constexpr std::chrono::seconds stall{1};

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
      sweeper_(executor, [this] { return sweep_periodically(); }),
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

void SessionScope::check(Watched& watched, Time now) {
  try {
    watched.check(now);
  } catch (const std::exception& failure) {
    report(failure);
    watched.fail();
  }
}

void SessionScope::sweep(Time now) {
  for (Watched* watched : watched_) check(*watched, now);
}

// Who takes the place of one that is gone may be left out once.
void SessionScope::sweep_on(Time now) {
  if (next_swept_ >= watched_.size()) next_swept_ = 0;
  const std::size_t end = next_swept_ + swept_at_once;
  for (; next_swept_ < std::min(end, watched_.size()); ++next_swept_)
    check(*watched_[next_swept_], now);
}

void SessionScope::refuse(std::string_view peer, Refusal reason, std::string_view why) {
  stats_.refused[reason].add();
  note_refused(peer, why);
}

void SessionScope::note_refused(std::string_view peer, std::string_view why) {
  if (report_refused_) report_refused_(peer, why);
}

void SessionScope::start() { sweeper_.start(); }

Task<> SessionScope::sweep_periodically() {
  const Running running(*this);
  sweeping_ = true;
  bool stalled = false;
  Time looked = Clock::now(), due = looked;
  while (!swept_) {
    const auto steps = static_cast<int>(1 + watched_.size() / swept_at_once);
    // What is late is made up for, a round at most, with a turn for others between the parts.
    due = stalled ? looked + sweep_period
                  : std::max(due + sweep_period / steps, looked - sweep_period);
    sweeps_.expires_at(due);
    co_await sweeps_.async_wait(no_throw);
    const Time now = Clock::now();
    // When the process stood still, what was said meanwhile is heard before anybody is judged.
    stalled = !stalled && now - std::max(due, looked) > stall;
    looked = now;
    if (!stalled) sweep_on(now);
  }
  sweeping_ = false;
}

void SessionScope::drain() {
  draining_ = true;
  for (Watched* watched : watched_) watched->drain();
}

void SessionScope::stop() {
  for (Watched* watched : watched_) watched->abort();
  end_sweeps();
}

void SessionScope::end_sweeps() {
  swept_ = true;
  sweeps_.cancel();
}

Task<> SessionScope::join() {
  // Time limits hold to the end: a client that answers no close must not hold up the others.
  while (running_ > (sweeping_ ? 1 : 0)) co_await ended_.wait();
  end_sweeps();
  while (running_ > 0) co_await ended_.wait();
}

}  // namespace millrace
