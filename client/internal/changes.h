// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <vector>

#include "transport/net/file_descriptor.h"

namespace millrace {

// Which streams of a client have changed, for an event loop that waits for a descriptor. Nothing is
// kept until somebody asks for that. Holds each number once, so no more than there were streams
// since it was last asked. Thread-safe.
class Changes {
 public:
  // The descriptor is readable while take() has something. Throws std::system_error.
  int descriptor();
  void add(std::uint64_t stream);
  std::vector<std::uint64_t> take();

 private:
  std::mutex mutex_;      // guards everything below
  FileDescriptor event_;  // none until it was asked for
  std::set<std::uint64_t> streams_;
};

}  // namespace millrace
