// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <vector>

#include "base/queue.h"
#include "base/time.h"
#include "training/filling/filling_job.h"

namespace millrace::training {

// The results of a BatchFiller, on their way from its threads to its caller, who gets them in the
// order of their numbers.
//
// publish() and publish_end() are called on the threads that fill, clear() while there are none.
// All else is confined to the caller's thread.
class FillingResults {
 public:
  // The caller sleeps until `several` results are there, or for a millisecond, and then until the
  // next one: a wake-up may cost more than a batch. `on_first`: as FillerSettings::on_filled.
  FillingResults(std::size_t capacity, std::size_t several, std::function<void()> on_first);

  void publish(FillingJob& job);
  // A thread ends by the current exception: its part of the batches is missing. The first one
  // becomes the next result.
  void publish_end();

  // The next result, or null if none comes before `deadline`. It stays the next one up to take().
  FillingJob* next_until(Time deadline);
  // The same for a result that the caller has made.
  FillingJob* next(FillingJob& made);
  void take(FillingJob& job);
  void clear();

 private:
  FillingJob* find() const;

  Queue<FillingJob*> queue_;
  const std::size_t several_;
  const std::function<void()> on_first_;
  FillingJob ended_{{}, 0, 0};
  std::atomic<bool> has_ended_{false};
  std::vector<FillingJob*> early_;  // came before an earlier one, or were not taken
  std::uint64_t taken_ = 0;
};

}  // namespace millrace::training
