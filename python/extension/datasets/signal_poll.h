// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include "base/time.h"
#include "python/extension/datasets/ensured_gil.h"
#include "python/extension/waits.h"
#include "training/contract/poll.h"

namespace millrace::python {

// Runs Python's signal handlers, at most every signal_interval, so that Ctrl-C ends a calculation.
// Throws nanobind::python_error. Needs no GIL.
inline training::Poll signal_poll() {
  return [next = Clock::now() + signal_interval]() mutable {
    if (Clock::now() < next) return;
    const EnsuredGil gil;
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
    next = Clock::now() + signal_interval;
  };
}

}  // namespace millrace::python
