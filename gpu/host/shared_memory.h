// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "base/bytes.h"

namespace millrace {

// Memory that other processes can map: a memfd. It has no name in the file system, and is freed
// when the last process has unmapped and closed it. Its size is sealed, so no access to it can
// fault. Owns its mapping and, if it created the memory, the descriptor.
//
// Confined to one thread. Accesses to the memory itself are not synchronised.
class SharedMemory {
 public:
  // Allocates and maps all of the memory at once. Throws std::system_error.
  static SharedMemory create(std::size_t bytes);

  // Maps `bytes` of memory that another process created. The caller keeps `descriptor` and may
  // close it afterwards. Throws std::system_error, also if the memory is smaller or can shrink.
  static SharedMemory map(int descriptor, std::size_t bytes);

  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  MutableBytes bytes() const { return bytes_; }
  // The descriptor to pass to other processes; -1 after map() and after close_descriptor().
  int descriptor() const { return descriptor_; }
  // Does not unmap the memory, neither here nor in other processes.
  void close_descriptor();

 private:
  SharedMemory(int descriptor, MutableBytes bytes) : descriptor_(descriptor), bytes_(bytes) {}

  int descriptor_ = -1;
  MutableBytes bytes_;
};

}  // namespace millrace
