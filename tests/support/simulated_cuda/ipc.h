// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace millrace::test::simulated_cuda {

// The content of the 64-byte handle with which another process opens memory or an event: the
// maker's process and descriptor of the file, and the tag that the file must have.
struct IpcHandle {
  enum class Kind : std::uint32_t { memory = 0x4D43'5553, event = 0x4543'5553 };

  Kind kind;
  std::int32_t process;
  std::int32_t descriptor;
  std::int32_t device;
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

  // Opens the file. -1 if it is not the same file any more: the tag at `tag_at` must match.
  int open_file(std::size_t tag_at) const;
};

}  // namespace millrace::test::simulated_cuda
