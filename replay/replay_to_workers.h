// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "recording/reader/recordings.h"
#include "replay/replay_output.h"
#include "replay/replay_pipeline.h"
#include "replay/rows/replay_schedule.h"
#include "replay/worker_lanes.h"

namespace millrace {

// Replays recorded streams to workers: reads and cuts them on the calling thread, and gives their
// rows to the lanes. A stream begins when the lanes have a slot for it. While no worker is
// attached, no stream begins.
class ReplayToWorkers {
 public:
  // `recordings` and `output` must outlive it. The streams are in the order of their numbers.
  // Throws std::runtime_error if the address cannot be used.
  ReplayToWorkers(recording::Recordings& recordings,
                  std::span<const recording::RecordedStream> streams,
                  const ReplayPipeline& pipeline, const WorkersAddress& address,
                  const ScheduleRule& rule, ReplayOutput& output);
  ~ReplayToWorkers();

  // Returns when every stream is over, after stop(), or when the output cannot be written. False:
  // it was stopped.
  bool run();
  // Thread-safe.
  void stop();
  std::uint16_t port() const;  // the TCP port

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace
