// SPDX-License-Identifier: Apache-2.0
#include "recording/writer/recorder_thread.h"

#include <pthread.h>

namespace millrace::recording {

RecorderThread::RecorderThread(Recorder& recorder, PagePool& pages)
    : recorder_(recorder), pages_(pages), thread_([this] { run(); }) {
  pthread_setname_np(thread_.native_handle(), "recorder");
}

RecorderThread::~RecorderThread() { stop(Stop::at_once); }

void RecorderThread::stop(Stop how) {
  if (how == Stop::at_once) at_once_.store(true, std::memory_order_relaxed);
  pages_.filled().close();
  if (thread_.joinable()) thread_.join();
}

void RecorderThread::run() {
  bool more = true;
  while (more) {
    const auto page = pages_.filled().pop_until(recorder_.due());
    if (at_once_.load(std::memory_order_relaxed)) return;
    const Time now = Clock::now();
    recorder_.shed(sheds_.load(std::memory_order_relaxed));
    if (page) recorder_.take(**page, now);
    recorder_.work(now);
    more = page || !pages_.filled().closed();
  }
  recorder_.finish(Clock::now());
}

}  // namespace millrace::recording
