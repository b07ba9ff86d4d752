// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <cxxabi.h>
#include <unistd.h>

namespace millrace::python {

// Holds the GIL while it exists, on any thread, also on one that holds it already. Replaces
// nanobind::gil_scoped_acquire, for two reasons:
//
// - If the interpreter ends, the thread stops here until the process ends, for the reason in
//   without_gil.h.
// - A thread that Python does not know gets a thread state, under a lock of the interpreter. Before
//   Python 3.12, a process that is forked meanwhile waits for this lock without a limit. No fork
//   happens meanwhile.
//
// Confined to one thread.
class EnsuredGil {
 public:
  EnsuredGil();
  ~EnsuredGil();
  EnsuredGil(const EnsuredGil&) = delete;
  EnsuredGil& operator=(const EnsuredGil&) = delete;

 private:
  PyGILState_STATE state_ = PyGILState_UNLOCKED;
  PyThreadState* made_ = nullptr;
};

// Called once, when the module is imported. Requires: the GIL.
void guard_forks();

// Returns what a call of Python returns. If the interpreter ends meanwhile, the thread stops here,
// too: the frames above must not be unwound. Requires: the GIL.
template <class Call>
nanobind::object called(const Call& call) {
  try {
    return call();
  } catch (abi::__forced_unwind&) {
    for (;;) ::pause();
  }
}

}  // namespace millrace::python
