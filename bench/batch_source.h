// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/time.h"
#include "load/streams/histogram.h"

namespace millrace::bench {

// A process that is killed with this object.
class Child {
 public:
  explicit Child(const std::function<void()>& does);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

 private:
  pid_t pid_;
};

// Answers each batch of a BatchSource with when it was taken, until the source is gone.
void take_batches(const std::string& url);

// The service's half of the way to a worker, its hub and its doors for workers, in this process:
// gives one batch of 16 rows of 100 ms at a time. Confined to one thread.
class BatchSource {
 public:
  static constexpr std::uint32_t rows = 16, width = 1600;

  struct Times {
    load::Histogram late;    // from when a batch was due to when it closed
    load::Histogram handed;  // from then until it was taken
  };

  // A batch becomes ready `pause` after the one before was done. With `max_wait` it has a single
  // row, and is due when that has waited for so long.
  explicit BatchSource(Duration pause, Duration max_wait = {});
  ~BatchSource();

  // Where its worker attaches.
  std::string local() const;
  std::string remote() const;

  // Of so many batches, the first 200 not counted. Throws where one closed before it was due.
  Times run(std::size_t batches);

 private:
  class Service;
  std::unique_ptr<Service> service_;
};

}  // namespace millrace::bench
