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

// A child process that runs `does`; killed with this object. Confined to one thread.
class Child {
 public:
  explicit Child(const std::function<void()>& does);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

 private:
  pid_t pid_;
};

// A worker that answers each batch of a BatchSource with the time when it was taken. Returns when
// the source has ended.
void take_batches(const std::string& url);

// The service's side of the worker protocol in this process: a hub and its worker servers. Hands
// over one batch of 16 rows of 100 ms at a time. Confined to one thread.
class BatchSource {
 public:
  static constexpr std::uint32_t rows = 16, width = 1600;

  struct Times {
    load::Histogram late;    // from the due time of a batch until it closed
    load::Histogram handed;  // from then until the worker took it
  };

  // The rows of a batch become ready `pause` after the previous batch is done. With `max_wait`, a
  // batch has one row, and is due when this row has waited for `max_wait`.
  explicit BatchSource(Duration pause, Duration max_wait = {});
  ~BatchSource();

  // The addresses to which its worker attaches.
  std::string local() const;
  std::string remote() const;

  // Measures `batches` batches, after 200 that are not measured. Throws if a batch closes before it
  // is due.
  Times run(std::size_t batches);

 private:
  class Service;
  std::unique_ptr<Service> service_;
};

}  // namespace millrace::bench
