// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>

#include "recording/reader/recordings.h"
#include "replay/replay_output.h"
#include "replay/rows/replay_schedule.h"

namespace millrace {

// Replays recorded streams to a running service, as its clients would: at ws:// each stream has a
// connection, at tcp:// all share one. A stream that was aborted has a connection of its own, which
// ends without `end`.
//
// Streams keep their recorded names, as names decide which sizes are drawn. So streams of one name
// follow each other. A stream that the service has no room for is opened again later.
class ReplayToService {
 public:
  // `recordings` and `output` must outlive it. The streams are in the order of their numbers.
  // Throws std::invalid_argument for a wrong URL, std::system_error if there is no free descriptor.
  ReplayToService(recording::Recordings& recordings,
                  std::span<const recording::RecordedStream> streams, const std::string& url,
                  const ScheduleRule& rule, ReplayOutput& output);
  ~ReplayToService();

  // Returns when every stream is over, after stop(), when no stream could be opened because there
  // is no service, or when the output cannot be written. False: it was stopped.
  bool run();
  // Thread-safe.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace
