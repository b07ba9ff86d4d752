// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/time.h"
#include "python/extension/waits.h"
#include "python/extension/without_gil.h"
#include "workers/library/worker.h"

namespace millrace::python {

// The common parts of the connections of workers and of trainers. Requires: the GIL.

// Holds the GIL while it exists, on a thread that has released it by `released`.
class WithGil {
 public:
  explicit WithGil(std::optional<WithoutGil>& released) : released_(released) { released_.reset(); }
  ~WithGil() { released_.emplace(); }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  std::optional<WithoutGil>& released_;
};

// Attaches without the GIL. An exception of `meanwhile` or of a signal handler ends the attempt.
// `on_wait` is called with the reason when the wait for a service begins.
template <class Source>
void attach(Source* into, const std::string& url, WorkerSettings settings, double wait,
            const nanobind::callable& on_wait, const nanobind::callable& meanwhile) {
  std::optional<WithoutGil> released(std::in_place);
  settings.wait = duration_of(wait);
  settings.on_wait = [&](const std::string& why, Duration) {
    const WithGil held(released);
    on_wait(why);
  };
  new (into) Source(url, settings, [&] {
    const WithGil held(released);
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
    meanwhile();
  });
}

// The frames and the rows that the service has named.
inline nanobind::tuple welcome_of(const worker_protocol::Welcome& welcome) {
  const FrameType& frames = welcome.frames;
  nanobind::list widths, rows;
  for (const std::uint32_t width : welcome.width_buckets) widths.append(width);
  for (const std::uint32_t row : welcome.row_buckets) rows.append(row);
  return nanobind::make_tuple(welcome.slots, welcome.rows, welcome.width, frames.values,
                              frames.features, name_of(frames.element), frames.rate, welcome.chunk,
                              widths, rows);
}

}  // namespace millrace::python
