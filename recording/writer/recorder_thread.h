// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <thread>

#include "base/time.h"
#include "recording/writer/page_pool.h"
#include "recording/writer/recorder.h"

namespace millrace::recording {

// The recorder's thread: takes pages from the pool until stop(). No io thread waits for it.
class RecorderThread {
 public:
  enum class Stop {
    seal,     // records the pages that were handed over, and seals the file
    at_once,  // as if the process were killed
  };

  // The arguments must outlive it.
  RecorderThread(Recorder& recorder, PagePool& pages);
  // Stops at once, if stop() was not called.
  ~RecorderThread();

  // Returns when the thread has ended, which takes as long as the disk takes. Requires: with
  // `seal`, no page is handed over any more.
  void stop(Stop how);
  // While `sheds`, slices are dropped because memory is short. Thread-safe.
  void shed(bool sheds) { sheds_.store(sheds, std::memory_order_relaxed); }

 private:
  void run();

  Recorder& recorder_;
  PagePool& pages_;
  // Relaxed: they guard no other data.
  std::atomic<bool> sheds_ = false, at_once_ = false;
  std::jthread thread_;
};

}  // namespace millrace::recording
