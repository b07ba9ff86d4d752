// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/session_scope.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <cassert>
#include <utility>

namespace millrace {
namespace {

constexpr Duration sweep_period = std::chrono::milliseconds(250);
// A check reads memory that is not in the cache. Thousands of checks at once would block the thread
// for milliseconds.
constexpr std::size_t swept_at_once = 128;
constexpr std::chrono::seconds stall{1};

}  // namespace

// Counts a task from its start until it has returned or was destroyed unfinished.
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

SessionScope::SessionScope(Executor executor, const ConnectionLimits& limits, TransportStats& stats,
                           Report report)
    : executor_(executor),
      limits_(limits),
      stats_(stats),
      report_(std::move(report)),
      sweeps_(executor),
      sweeper_(executor, [this] { return sweep_periodically(); }),
      ended_(executor) {}

SessionScope::~SessionScope() { assert(running_ == 0 && watched_.empty()); }

SessionScope::Watched::Watched(SessionScope& scope) : scope_(scope), index_(scope.watched_.size()) {
  scope_.watched_.push_back(this);
}

SessionScope::Watched::~Watched() {
  scope_.watched_[index_] = scope_.watched_.back();
  scope_.watched_[index_]->index_ = index_;
  scope_.watched_.pop_back();
}

Duration SessionScope::jittered(Duration time) {
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

// An object that is moved to the index of a destroyed one may miss one round.
void SessionScope::sweep_next(Time now) {
  if (next_swept_ >= watched_.size()) next_swept_ = 0;
  const std::size_t end = next_swept_ + swept_at_once;
  for (; next_swept_ < std::min(end, watched_.size()); ++next_swept_)
    check(*watched_[next_swept_], now);
}

std::string SessionScope::new_id() {
  std::string id;
  for (int i = 0; i < 16; ++i) id += "0123456789abcdef"[random_() / 64 % 16];
  return id;
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
  Time last_wake = Clock::now(), due = last_wake;
  while (!stopped_) {
    const auto steps = static_cast<int>(1 + watched_.size() / swept_at_once);
    // Late checks are made up for, up to one round, with a turn for other work between the parts.
    due = stalled ? last_wake + sweep_period
                  : std::max(due + sweep_period / steps, last_wake - sweep_period);
    sweeps_.expires_at(due);
    co_await sweeps_.async_wait(no_throw);
    const Time now = Clock::now();
    // After a stall of the process, messages that have arrived are received before any check.
    stalled = !stalled && now - std::max(due, last_wake) > stall;
    last_wake = now;
    if (!stalled) sweep_next(now);
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
  stopped_ = true;
  sweeps_.cancel();
}

Task<> SessionScope::join() {
  // Time limits apply until the end: a client that does not answer a close must not block the stop.
  while (running_ > (sweeping_ ? 1 : 0)) co_await ended_.wait();
  end_sweeps();
  while (running_ > 0) co_await ended_.wait();
}

}  // namespace millrace
