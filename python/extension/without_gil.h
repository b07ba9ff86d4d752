// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <unistd.h>

namespace millrace::python {

// Gives the GIL up while it lives: for whatever waits, in place of nanobind::gil_scoped_release.
//
// A daemon thread may still wait when the interpreter ends. Python before 3.14 unwinds a thread
// that asks for the GIL then, and there are frames above that must not throw: the process would
// abort. So the thread stops here until the process is gone, as Python 3.14 has it.
class WithoutGil {
 public:
  WithoutGil() : thread_(PyEval_SaveThread()) {}
  ~WithoutGil() {
    try {
      PyEval_RestoreThread(thread_);
    } catch (...) {  // what pthread_exit unwinds with
      for (;;) ::pause();
    }
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* const thread_;
};

}  // namespace millrace::python
