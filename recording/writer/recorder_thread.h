// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "recording/writer/page_pool.h"
#include "recording/writer/recorder.h"

namespace millrace::recording {

// The recorder's thread: takes pages from the pool. No io thread waits for it.
class RecorderThread {
 public:
  // `ended` is called on the thread, as its last action. The other arguments must outlive it.
  RecorderThread(Recorder& recorder, PagePool& pages, std::function<void()> ended);
  // Waits for the call of the disk that is running, if any. Without finish(), this is as if the
  // process were killed: the last commit counts, and the file is not sealed.
  ~RecorderThread();

  // The thread records the pages that were handed over, seals the file, and ends. Does not wait.
  void finish() { pages_.filled().close(); }
  // While `sheds`, slices are dropped because memory is short. Thread-safe.
  void shed(bool sheds) { sheds_.store(sheds, std::memory_order_relaxed); }

 private:
  void run();

  Recorder& recorder_;
  PagePool& pages_;
  const std::function<void()> ended_;
  // Relaxed: they guard no other data.
  std::atomic<bool> sheds_ = false, at_once_ = false;
  std::jthread thread_;
};

}  // namespace millrace::recording
