// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <vector>

#include "base/file_descriptor.h"

namespace millrace {

// The numbers of the streams of a client that have changed, for an event loop that waits for a
// descriptor. Each number is held once. Records nothing before the first call of descriptor().
// Thread-safe.
class Changes {
 public:
  // Readable while take() has a number. Owned by this object. Throws std::system_error if there is
  // no free descriptor.
  int descriptor();
  void add(std::uint64_t stream);
  // Returns the numbers and removes them.
  std::vector<std::uint64_t> take();

 private:
  std::mutex mutex_;      // guards everything below
  FileDescriptor event_;  // an eventfd; empty until descriptor()
  std::set<std::uint64_t> streams_;
};

}  // namespace millrace
