// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace millrace::test::simulated_cuda {

// What is in the 64 bytes that another process opens memory or an event by: where the process that
// made it has its file, and the tag that this file must have.
struct IpcHandle {
  enum class Kind : std::uint32_t { memory = 0x4D43'5553, event = 0x4543'5553 };

  Kind kind;
  std::int32_t process;
  std::int32_t descriptor;
  std::int32_t physical_device;
  std::uint64_t bytes;
  std::uint64_t tag;

  template <class Opaque>
  static IpcHandle from(const Opaque& opaque) {
    static_assert(sizeof(IpcHandle) <= sizeof opaque.reserved);
    IpcHandle handle;
    std::memcpy(&handle, opaque.reserved, sizeof handle);
    return handle;
  }
  template <class Opaque>
  void to(Opaque& opaque) const {
    opaque = {};
    std::memcpy(opaque.reserved, this, sizeof *this);
  }

  // Its file, if it still is the one that was meant: the tag lies there at `tag_at`. -1: it is not.
  int open_file(std::size_t tag_at) const;
};

}  // namespace millrace::test::simulated_cuda
