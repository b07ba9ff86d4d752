// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <random>
#include <string_view>
#include <vector>

#include "schemas/client_codec.h"
#include "transport/net/endless_task.h"
#include "transport/net/limits.h"
#include "transport/net/retry_times.h"
#include "transport/net/stats.h"
#include "transport/net/wakeup.h"
#include "transport/websocket/request_error.h"

namespace millrace {

// The client connections of one io thread: starts them, looks after their time limits with one
// coarse timer for all, stops them, waits for them. Confined to one thread.
class SessionScope {
 public:
  // Called with what ended a connection by our fault.
  using Report = std::function<void(std::string_view what)>;
  // Called for each connection that is refused, with the address of its peer.
  using ReportRefused = std::function<void(std::string_view peer, std::string_view why)>;

  // `limits` and `stats` outlive it.
  SessionScope(Executor executor, const ConnectionLimits& limits, DoorStats& stats,
               Report report = {});
  ~SessionScope();  // Requires: joined, or nothing was spawned.

  // Something with a time limit. Registered while it lives, and destroyed before the scope.
  class Watched {
   public:
    explicit Watched(SessionScope& scope);
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;

    virtual void check(Time now) = 0;  // some times a second
    virtual void abort() = 0;          // ends at once
    virtual void fail() { abort(); }   // the same, where check() threw
    virtual void drain() {}            // the service stops

   protected:
    ~Watched();

   private:
    friend class SessionScope;
    SessionScope& scope_;
    std::size_t place_;
  };

  Executor executor() const { return executor_; }
  const ConnectionLimits& limits() const { return limits_; }
  DoorStats& stats() { return stats_; }
  std::size_t connections() const { return watched_.size(); }
  // Not all at the same moment: up to a tenth more or less.
  Duration about(Duration time);
  RetryTimes& retry_times() { return retry_times_; }
  client_protocol::Encoder& encoder() { return encoder_; }  // one for all, for its memory

  // Counts a connection that is refused and reports it, if refusals are reported.
  void refuse(std::string_view peer, Refusal reason, std::string_view why);
  // Only reports it.
  void note_refused(std::string_view peer, std::string_view why);
  void report_refused(ReportRefused report) { report_refused_ = std::move(report); }

  // Runs it on the scope's thread. What it throws is reported and goes no further.
  void spawn(Task<> session);
  void report(const std::exception& failure);

  // Checks time limits from now on, periodically and a part of them at a time. After a stall it
  // goes on a period later: what was said meanwhile is heard first.
  void start();
  // Checks all, as of `now`: for tests, whose time is their own.
  void sweep(Time now);

  // Tells everything watched that the service stops.
  void drain();
  bool draining() const { return draining_; }
  // Cuts every connection, and ends the sweeps.
  void stop();
  // Returns when none is left; ends the sweeps. New ones may be spawned until then.
  Task<> join();

 private:
  class Running;

  void check(Watched& watched, Time now);
  void sweep_on(Time now);  // the next part
  void end_sweeps();
  Task<> sweep_periodically();

  Executor executor_;
  const ConnectionLimits& limits_;
  DoorStats& stats_;
  const Report report_;
  ReportRefused report_refused_;
  client_protocol::Encoder encoder_;
  std::vector<Watched*> watched_;
  std::size_t next_swept_ = 0;  // its place in them
  std::minstd_rand random_{std::random_device{}()};
  RetryTimes retry_times_;
  std::size_t running_ = 0;
  bool sweeping_ = false;
  bool draining_ = false;
  bool swept_ = false;  // time limits are looked after no more
  Timer sweeps_;
  EndlessTask sweeper_;
  Wakeup ended_;
};

}  // namespace millrace
