// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/time.h"
#include "recording/reader/recordings.h"
#include "recording/reader/stream_parts.h"
#include "replay/replay_output.h"
#include "replay/replay_pipeline.h"
#include "replay/rows/pace.h"
#include "replay/rows/replay_schedule.h"
#include "replay/worker_lanes.h"
#include "schemas/stream_request.h"
#include "transport/net/net.h"

namespace millrace {

// A replay of recorded streams. Confined to the thread that calls run(), except stop().
class Replay {
 public:
  virtual ~Replay() = default;
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  // Returns when every stream is over, after stop(), or when the output cannot be written. False:
  // it was stopped.
  bool run();
  // Thread-safe.
  void stop();

 protected:
  Replay(recording::Recordings& recordings, std::span<const recording::StreamParts> streams,
         const ScheduleRule& rule, ReplayOutput& output);

  // Does what is due, and waits for what is due next.
  virtual void pump(Time now) = 0;
  // Calls pump() at `next` or earlier; Time::max(): need not call it.
  void wait(Time next, Time now);
  void end();
  Pace pace_of(const recording::StreamParts& stream, Time now) const;

  recording::Recordings& recordings_;
  const std::span<const recording::StreamParts> streams_;
  ReplayOutput& output_;
  ReplaySchedule schedule_;
  net::io_context main_{1};
  bool stopped_ = false;

 private:
  const double speed_;
  net::executor_work_guard<Executor> work_{main_.get_executor()};
  Timer timer_{main_.get_executor()};
  Time timer_at_ = Time::max();
};

// The streams of these functions are in the order of their numbers. `recordings` and `output` must
// outlive the replay.

// To workers: reads and cuts the streams, and gives their rows to the lanes. A stream begins when
// the lanes have a slot for it. While no worker is attached, no stream begins. Throws
// std::runtime_error if the address cannot be used.
std::unique_ptr<Replay> replay_to_workers(recording::Recordings& recordings,
                                          std::span<const recording::StreamParts> streams,
                                          const ReplayPipeline& pipeline,
                                          const WorkersAddress& address, const ScheduleRule& rule,
                                          ReplayOutput& output);

// To a running service, as its clients would: at ws:// each stream has a connection, at tcp:// all
// share one. A stream that was aborted has a connection of its own, which ends without `end`. The
// replay ends also when no stream could be opened because there is no service.
//
// Streams keep their recorded names, as names decide which sizes are drawn. So streams of one name
// follow each other. A stream that the service has no room for is opened again later. `access` is
// that of Client. Throws std::invalid_argument for a wrong URL or access, std::system_error if
// there is no free descriptor.
std::unique_ptr<Replay> replay_to_service(recording::Recordings& recordings,
                                          std::span<const recording::StreamParts> streams,
                                          const std::string& url, const ServiceAccess& access,
                                          const ScheduleRule& rule, ReplayOutput& output);

}  // namespace millrace
