// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/time.h"
#include "training/filling/filling_job.h"
#include "training/filling/row_filler.h"

namespace millrace::training {

// The state that the threads of a BatchFiller share while they fill. Thread-safe, except for
// restart().
class SharedFilling {
 public:
  // Fills a part of a batch, unless a batch before it has failed. True: it was the last part.
  bool fill(FillingJob& job, RowFiller& filler, std::size_t part);

  // The batch fails, and those after it need not be filled.
  void set_failed(std::uint64_t number);
  bool has_failed() const { return first_failed_ != none; }
  bool is_before_failure(const FillingJob& job) const { return job.number < first_failed_; }

  // True: it was not stopped before.
  bool stop() { return !stopping_.exchange(true); }
  bool is_stopping() const { return stopping_; }
  // Requires: no thread fills.
  void restart();

  // The time that the threads have spent on rows, together.
  Duration time() const { return Duration(time_.load(std::memory_order_relaxed)); }

 private:
  static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();

  std::atomic<bool> stopping_{false};
  std::atomic<std::uint64_t> first_failed_{none};  // number of a job
  std::atomic<Duration::rep> time_{0};
};

}  // namespace millrace::training
