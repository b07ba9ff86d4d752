// SPDX-License-Identifier: Apache-2.0
#include "recording/writer/recorder_thread.h"

#include <new>
#include <utility>

#include "base/quiet_thread.h"
#include "base/time.h"

namespace millrace::recording {

namespace {

// If an allocation fails, the next call continues.
template <class Work>
void unless_memory_is_short(const Work& work) {
  try {
    work();
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace

RecorderThread::RecorderThread(Recorder& recorder, PagePool& pages, std::function<void()> ended)
    : recorder_(recorder),
      pages_(pages),
      ended_(std::move(ended)),
      thread_(quiet_thread("recorder", [this] { run(); })) {}

RecorderThread::~RecorderThread() {
  at_once_.store(true, std::memory_order_relaxed);
  pages_.filled().close();
}

void RecorderThread::run() {
  for (bool more = true; more;) {
    const bool closed = pages_.filled().closed();
    const auto page = pages_.filled().pop_until(recorder_.due());
    if (at_once_.load(std::memory_order_relaxed)) return;
    more = page || !closed;
    const Time now = Clock::now();
    recorder_.shed(sheds_.load(std::memory_order_relaxed));
    if (page) recorder_.take(**page, now);
    // All that waits: if a commit takes long, the next one is larger, and the queue does not grow.
    while (page && !recorder_.has_enough()) {
      const auto next = pages_.filled().pop_until(now);
      if (!next) break;
      recorder_.take(**next, now);
    }
    unless_memory_is_short([&] { recorder_.work(now); });
  }
  unless_memory_is_short([&] { recorder_.finish(Clock::now()); });
  ended_();
}

}  // namespace millrace::recording
