// SPDX-License-Identifier: Apache-2.0
#include "tests/support/simulated_cuda/location.h"

#include "tests/support/simulated_cuda/breaches.h"
#include "tests/support/simulated_cuda/host_memory.h"
#include "tests/support/simulated_cuda/memory.h"
#include "tests/support/simulated_cuda/unseen.h"

namespace millrace::test::simulated_cuda {

namespace {

Location on_device(Allocation& allocation, const std::byte* pointer, std::size_t bytes) {
  const auto offset = static_cast<std::size_t>(pointer - allocation.pointer);
  if (bytes > allocation.bytes - offset)
    return {.error = breach(Breach::outside_allocation, "past the end of a device's memory",
                            cudaErrorInvalidValue)};
  return {.kind = Location::Kind::device,
          .at = allocation.pointer + offset,
          .device = allocation.device,
          .bytes_left = allocation.bytes - offset,
          .uses = &allocation.uses};
}

}  // namespace

Location location_of(const void* pointer, std::size_t bytes) {
  const Unseen unseen;
  auto* at = const_cast<std::byte*>(static_cast<const std::byte*>(pointer));
  if (Allocation* allocation = allocation_at(at)) return on_device(*allocation, at, bytes);
  if (was_freed(at))
    return {.error = breach(Breach::use_after_free, "a device's memory", cudaErrorInvalidValue)};
  Pinned* pinned = pinned_at(at, bytes);
  if (!pinned) return {.at = at};
  // CUDA treats partly locked pages as an error.
  if (at < pinned->base || at + bytes > pinned->base + pinned->bytes)
    return {.error = cudaErrorInvalidValue};
  return {.kind = Location::Kind::pinned, .at = at, .uses = &pinned->uses};
}

Location location_on(int device, const void* pointer, std::size_t bytes) {
  Location location = location_of(pointer, bytes);
  if (location.error != cudaSuccess) return location;
  if (location.kind != Location::Kind::device)
    location.error =
        breach(Breach::outside_allocation, "no memory of a device", cudaErrorInvalidValue);
  else if (location.device != device)
    (void)breach(Breach::wrong_device, "memory of another than the stream's", cudaSuccess);
  return location;
}

}  // namespace millrace::test::simulated_cuda
