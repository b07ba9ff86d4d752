// SPDX-License-Identifier: Apache-2.0
#include "python/extension/datasets/ensured_gil.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>

namespace millrace::python {
namespace {

PyInterpreterState* interpreter = nullptr;
bool clears_late = false;  // before Python 3.12.4

// Held by a thread that gets a thread state, which needs no GIL, and by one that forks.
std::atomic_flag attaching;

void lock() {
  while (attaching.test_and_set(std::memory_order_acquire)) attaching.wait(true);
}
void unlock() {
  attaching.clear(std::memory_order_release);
  attaching.notify_all();
}

}  // namespace

void guard_forks() {
  interpreter = PyInterpreterState_Get();
  clears_late = PyLong_AsLong(PySys_GetObject("hexversion")) < 0x030c04f0;
  ::pthread_atfork(lock, unlock, unlock);
}

EnsuredGil::EnsuredGil() try {
  if (PyGILState_GetThisThreadState() != nullptr) {
    state_ = PyGILState_Ensure();
    return;
  }
  lock();
  made_ = PyThreadState_New(interpreter);
  unlock();
  if (made_ == nullptr) Py_FatalError("no memory for a thread");
  PyEval_RestoreThread(made_);
} catch (...) {  // the unwinding of pthread_exit
  for (;;) ::pause();
}

// A thread state is made with a count of one, as if PyGILState_Ensure() had made it, so the release
// deletes it. (PyThreadState_DeleteCurrent() is not in the stable ABI.) Before Python 3.12.4, it
// clears the state after its count is 0: an object in it whose destructor needs the GIL would
// delete the state a second time. So it is cleared before.
EnsuredGil::~EnsuredGil() {
  try {
    if (made_ != nullptr && clears_late) PyThreadState_Clear(made_);
    PyGILState_Release(state_);
  } catch (...) {  // as above
    for (;;) ::pause();
  }
}

}  // namespace millrace::python
