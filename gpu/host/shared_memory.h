// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "base/bytes.h"

namespace millrace {

// Memory that other processes can map, in a memfd: it has no name, and is gone with the last
// process that has it. Its size is sealed, so that nobody's reading can fault. Owns its mapping,
// and the descriptor where it made it.
//
// Confined to one thread; the memory itself is not guarded at all.
class SharedMemory {
 public:
  // Throws std::system_error, also where there is no memory left for all of it.
  static SharedMemory create(std::size_t bytes);

  // What another process made; `descriptor` stays the caller's and may be closed afterwards.
  // Throws std::system_error, also where it is smaller than `bytes` or can shrink.
  static SharedMemory map(int descriptor, std::size_t bytes);

  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  MutableBytes bytes() const { return bytes_; }
  // For passing the memory to other processes; -1 if this process did not create it, or has closed
  // the descriptor.
  int descriptor() const { return descriptor_; }
  // The mapping stays, here and in every process that has one.
  void close_descriptor();

 private:
  SharedMemory(int descriptor, MutableBytes bytes) : descriptor_(descriptor), bytes_(bytes) {}

  int descriptor_ = -1;
  MutableBytes bytes_;
};

}  // namespace millrace
