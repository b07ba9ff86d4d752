// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <random>
#include <string>
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

// The client connections of one io thread: starts them, checks their time limits with one coarse
// timer for all, stops them and waits for them. Confined to one thread.
class SessionScope {
 public:
  // Called with the text of an exception that ended a connection.
  using Report = std::function<void(std::string_view what)>;
  // Called for each connection that is refused, with the address of its peer.
  using ReportRefused = std::function<void(std::string_view peer, std::string_view why)>;

  // `limits` and `stats` outlive the scope.
  SessionScope(Executor executor, const ConnectionLimits& limits, TransportStats& stats,
               Report report = {});
  ~SessionScope();  // Requires: join() has returned, or nothing was spawned.

  // An object with time limits. Registered while it exists; destroyed before the scope.
  class Watched {
   public:
    explicit Watched(SessionScope& scope);
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;

    virtual void check(Time now) = 0;  // called about four times a second
    virtual void abort() = 0;          // ends it at once
    virtual void fail() { abort(); }   // the same, after check() has thrown
    virtual void drain() {}            // the service is stopping

   protected:
    ~Watched();

   private:
    friend class SessionScope;
    SessionScope& scope_;
    std::size_t index_;
  };

  Executor executor() const { return executor_; }
  const ConnectionLimits& limits() const { return limits_; }
  TransportStats& stats() { return stats_; }
  std::size_t connections() const { return watched_.size(); }
  // `time` ± up to 10 % at random, so that connections do not act at the same moment.
  Duration jittered(Duration time);
  RetryTimes& retry_times() { return retry_times_; }
  client_protocol::Encoder& encoder() { return encoder_; }  // shared, to save memory
  std::vector<std::byte>& scratch() { return scratch_; }    // shared, for the message in progress
  // 16 random hexadecimal digits, which distinguish sessions. Not secret.
  std::string new_id();

  // Counts and reports a refused connection.
  void refuse(std::string_view peer, Refusal reason, std::string_view why);
  // Only reports it.
  void note_refused(std::string_view peer, std::string_view why);
  void report_refused(ReportRefused report) { report_refused_ = std::move(report); }

  // Starts a task on the scope's thread. Its exception is reported and not passed on.
  void spawn(Task<> session);
  void report(const std::exception& failure);

  // Starts to check the time limits periodically, a part of the connections at a time. After a
  // stall of the process, the checks pause for one period, so that messages that arrived meanwhile
  // are received first.
  void start();
  // Checks all time limits as of `now`. For tests, which have their own clock.
  void sweep(Time now);

  // Calls drain() of all watched objects.
  void drain();
  bool draining() const { return draining_; }
  // Aborts all watched objects, and stops the checks.
  void stop();
  // Returns when all tasks have ended, and stops the checks. New tasks may be spawned until then.
  Task<> join();

 private:
  class Running;

  void check(Watched& watched, Time now);
  void sweep_next(Time now);  // checks the next part
  void end_sweeps();
  Task<> sweep_periodically();

  Executor executor_;
  const ConnectionLimits& limits_;
  TransportStats& stats_;
  const Report report_;
  ReportRefused report_refused_;
  client_protocol::Encoder encoder_;
  std::vector<std::byte> scratch_;
  std::vector<Watched*> watched_;
  std::size_t next_swept_ = 0;  // an index of watched_
  std::minstd_rand random_{std::random_device{}()};
  RetryTimes retry_times_;
  std::size_t running_ = 0;
  bool sweeping_ = false;
  bool draining_ = false;
  bool stopped_ = false;  // no time limit is checked any more
  Timer sweeps_;
  EndlessTask sweeper_;
  Wakeup ended_;
};

}  // namespace millrace
