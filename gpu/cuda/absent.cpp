// SPDX-License-Identifier: Apache-2.0
// The functions of cuda.h and fetcher.h in a build without CUDA.
#include "gpu/cuda/cuda.h"
#include "gpu/cuda/fetcher.h"

namespace millrace::cuda {

namespace {

constexpr const char* absent = "this build has no CUDA";

[[noreturn]] void fail() { throw DeviceFailure(DeviceFault::other, absent); }

}  // namespace

std::string_view version() { return "none"; }
Machine find_devices() { return {.devices = {}, .why_none = absent}; }
void create_context(const FoundDevice&) { fail(); }
std::unique_ptr<Device> open(const FoundDevice&, const SlabSettings&) { fail(); }
std::unique_ptr<DeviceReader> open_slabs(const FoundDevice&, const RowFormat&, std::size_t,
                                         const DeviceHandles&) {
  fail();
}
std::unique_ptr<DeviceReader> copy_slabs(const FoundDevice&, const RowFormat&, std::uint32_t,
                                         std::size_t, MutableBytes) {
  fail();
}
std::unique_ptr<Fetcher> make_fetcher(int) { fail(); }

}  // namespace millrace::cuda
