// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <unistd.h>

namespace millrace::python {

// Releases the GIL while it exists, around a wait. Replaces nanobind::gil_scoped_release.
//
// A daemon thread may still wait when the interpreter ends. Python before 3.14 unwinds a thread
// that then asks for the GIL. The process would abort, because there are frames above that must
// not throw. So the thread stops here until the process ends, as in Python 3.14.
//
// Confined to one thread.
class WithoutGil {
 public:
  WithoutGil() : thread_(PyEval_SaveThread()) {}
  ~WithoutGil() {
    try {
      PyEval_RestoreThread(thread_);
    } catch (...) {  // the unwinding of pthread_exit
      for (;;) ::pause();
    }
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* const thread_;
};

}  // namespace millrace::python
