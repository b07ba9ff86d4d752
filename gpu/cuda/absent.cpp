// SPDX-License-Identifier: Apache-2.0
// What there is of CUDA in a build without it.
#include "gpu/cuda/cuda.h"

namespace millrace::cuda {

namespace {

constexpr const char* absent = "this build has no CUDA";

[[noreturn]] void fail() { throw DeviceFailure(DeviceFault::other, absent); }

}  // namespace

std::string_view version() { return "none"; }
Machine look() { return {.devices = {}, .why_none = absent}; }
void use(const Found&) { fail(); }
std::unique_ptr<Device> open(const Found&, const SlabSettings&) { fail(); }
std::unique_ptr<DeviceReader> open_slabs(const Found&, const RowFormat&, std::size_t,
                                         const DeviceHandles&) {
  fail();
}
std::unique_ptr<DeviceReader> copy_slabs(const Found&, const RowFormat&, std::uint32_t, std::size_t,
                                         MutableBytes) {
  fail();
}

}  // namespace millrace::cuda
