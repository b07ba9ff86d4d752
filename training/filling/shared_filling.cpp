// SPDX-License-Identifier: Apache-2.0
#include "training/filling/shared_filling.h"

namespace millrace::training {

bool SharedFilling::fill(FillingJob& job, RowFiller& filler, std::size_t part) {
  const Time begin = Clock::now();
  if (job.number <= first_failed_) filler.fill(job, stopping_);
  if (job.failures[part]) set_failed(job.number);
  time_.fetch_add((Clock::now() - begin).count(), std::memory_order_relaxed);
  return job.remaining.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

void SharedFilling::set_failed(std::uint64_t number) {
  std::uint64_t first = first_failed_;
  while (number < first && !first_failed_.compare_exchange_weak(first, number)) {
  }
}

void SharedFilling::restart() {
  stopping_ = false;
  first_failed_ = none;
}

}  // namespace millrace::training
