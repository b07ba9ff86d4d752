// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "workers/lanes/lanes.h"

namespace millrace {

// A line for the log: an event of a worker, or of a row of a stream, with its reason.
struct WorkerEvent {
  std::string_view what;    // the event, a string literal
  std::string_view worker;  // name of the worker, or empty
  std::string_view why = {};
  std::string_view stream = {};              // name of the stream, or empty
  bool warning = false;                      // an operator may have to act
  std::optional<MovedStreams> streams = {};  // those of a lost worker
};

inline WorkerEvent warning(std::string_view what, std::string_view worker, std::string_view why,
                           std::string_view stream = {},
                           const std::optional<MovedStreams>& streams = {}) {
  return {.what = what,
          .worker = worker,
          .why = why,
          .stream = stream,
          .warning = true,
          .streams = streams};
}

// Writes a line to the log. A hub calls it on its home thread.
using WorkerLog = std::function<void(const WorkerEvent&)>;

}  // namespace millrace
