// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <cxxabi.h>
#include <unistd.h>

namespace millrace::python {

// Holds the GIL while it exists, on any thread, also on one that holds it already. Replaces
// nanobind::gil_scoped_acquire: if the interpreter ends, the thread stops here until the process
// ends, for the reason in without_gil.h.
//
// Confined to one thread.
class EnsuredGil {
 public:
  EnsuredGil() : state_(ensure()) {}
  ~EnsuredGil() { PyGILState_Release(state_); }
  EnsuredGil(const EnsuredGil&) = delete;
  EnsuredGil& operator=(const EnsuredGil&) = delete;

 private:
  static PyGILState_STATE ensure() {
    try {
      return PyGILState_Ensure();
    } catch (...) {  // the unwinding of pthread_exit
      for (;;) ::pause();
    }
  }

  const PyGILState_STATE state_;
};

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
