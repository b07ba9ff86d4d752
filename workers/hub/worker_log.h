// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

namespace millrace {

// What happened to which worker, or to a row of which stream, and why: a line for the log.
struct WorkerEvent {
  std::string_view what;    // a literal
  std::string_view worker;  // or empty
  std::string_view why = {};
  std::string_view stream = {};
  bool warning = false;  // an operator may want to do something about it
};

inline WorkerEvent warning(std::string_view what, std::string_view worker, std::string_view why) {
  return {.what = what, .worker = worker, .why = why, .warning = true};
}

// Called on the home thread.
using WorkerLog = std::function<void(const WorkerEvent&)>;

}  // namespace millrace
