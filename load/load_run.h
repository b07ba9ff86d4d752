// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/frame_type.h"
#include "load/streams/outcome.h"
#include "load/streams/plan.h"
#include "load/streams/schedule.h"
#include "load/streams/usage.h"

namespace millrace::load {

// Whom a load is for.
struct LoadTarget {
  std::string url = "ws://127.0.0.1:8080";  // or tcp://HOST:PORT
  std::string pipeline = "default";
  std::string options = {};  // of every stream: a JSON object, or empty
  FrameType type = {};       // of the pipeline; with a worker of ours, which is told, of `content`
  enum class OwnWorker : std::uint8_t { none, silent, answering } worker = OwnWorker::none;
  std::string workers = {};             // where it attaches; as Worker's url
  std::vector<std::byte> content = {};  // frames as clients send them; empty: noise
  unsigned threads = 1;                 // that clients are shared among
  std::optional<pid_t> server = {};     // a process of this machine, to be measured
};

// What was done until an instant, and used for it.
struct Sample {
  Duration clients{}, worker{};         // CPU time of ours
  std::optional<Usage> server{};        // nothing where it is not measured, or gone
  std::uint64_t packets = 0, rows = 0;  // sent, and given back by the worker of ours
};

// What came of a load. Refers to its schedule.
struct LoadReport {
  LoadPlan plan = {};
  bool answered = false;  // a result for each row is due: our worker answers
  ClientOutcome clients;
  std::optional<WorkerOutcome> worker = {};
  Sample before = {};                // any stream was open
  Sample idle = {};                  // all were, and nothing was sent
  std::vector<Sample> counted = {};  // at the begin of what counts, and at the end of each window
};

// Runs a load: attaches the worker, opens the streams, sends by the schedule, ends them, and waits
// until all that was sent has been answered for. `schedule` is the plan's, not started. Throws
// std::runtime_error, WorkerError where the service cannot be reached.
LoadReport run_load(Schedule& schedule, const LoadTarget& target);

}  // namespace millrace::load
