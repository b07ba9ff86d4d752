// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// A CUDA runtime without a device, for tests: the functions of cudart that gpu/ calls and those of
// gpu/cuda/kernels.h, as an object library. A program that is linked with it uses it in place of
// both, so that our own CUDA code runs unchanged, on any machine and under the sanitizers.
//
// Device memory is host memory in a memfd, filled with 0xCD; a device pointer points to it. A
// stream is a thread that runs its operations in order, late, and with pauses. Memory and events
// can be opened by other processes that are linked with this library. ThreadSanitizer sees only the
// order that CUDA guarantees, and no other synchronization of the simulation: use of a copy without
// waiting for it is a data race. Forbidden calls end the process (see Breach), or fail with the
// code that CUDA has for them.
//
// Not simulated: the legacy stream waits for other streams, and they wait for it; work on a stream
// that captures a graph.
//
// An environment variable configures whole programs at their first call of CUDA. Entries end with
// `;`:
//
//   MILLRACE_SIMULATED_CUDA="devices=1;fail=cudaHostRegister:801"
//
//   devices=N                  devices of the machine, default 2; CUDA_VISIBLE_DEVICES="": none
//   memory=BYTES               memory of each device, default 1 GiB
//   driver=VERSION             the newest CUDA of the driver, such as 12020; 0: there is no driver
//   pauses=MICROSECONDS        the longest pause, default 200; 0: no pauses
//   fail=FUNCTION:ERROR[:N]    the next N calls, or all, return this code and do nothing
//   dead-when=PATH:ERROR       all devices die once this file exists
//   hold-copies                no copy begins
//   hold-copies-while=PATH     no copy begins while this file exists
//   stale-queries=N            every N-th query of a shared event does not see its last record
//   calls=PATH                 at exit, lines "FUNCTION COUNT" are written to this file
//   check-leaks                at exit, the process ends with 86 if a resource was not freed
//
// Thread-safe, except for reset().
namespace millrace::test::simulated_cuda {

// Errors that no program may make, and that CUDA might not notice. A text on stderr describes the
// error and its place.
enum class Breach : std::uint8_t {
  default_stream,       // use of stream 0
  outside_allocation,   // a copy or a kernel accesses memory outside an allocation
  use_after_free,       // use of freed memory, or of a destroyed stream or event
  freed_in_use,         // freed memory that an operation on a stream still uses
  freed_while_open,     // freed memory that another process has open
  unregistered_in_use,  // unregistered pages that an operation on a stream still uses
  unmapped_registered,  // pages were unmapped before they were unregistered
  overrun,              // a kernel wrote past the end of its memory
  wrong_device,         // memory, stream or event of another device than that of the call
  destroyed_elsewhere,  // use of an event that its creator destroyed
};
inline constexpr int breaches_known = 10;

// From now on the breach is only counted; the call returns the code that CUDA has for it, if any.
void tolerate(Breach breach);
std::uint64_t count(Breach breach);

// Restores the state before the first call of CUDA, without the environment, and frees everything.
// Requires: no other thread calls CUDA, and no other process has memory or events of this one open.
void reset();

// Devices have ordinals from 0 on, and UUIDs that are the same in every process.
void set_devices(int count);
void set_memory(std::uint64_t bytes);
void set_driver(int version);  // as CUDART_VERSION; 0: there is no driver
void set_pauses(unsigned longest_us);

// The next `calls` calls of the function return this cudaError_t and do nothing. 0 cancels this.
inline constexpr std::uint64_t all_calls = ~std::uint64_t{0};
void fail(std::string_view function, int error, std::uint64_t calls = all_calls);

// Kills the device like a faulty kernel: operations on its streams are dropped, its events do not
// pass any more, and every call returns this cudaError_t. Calls that free resources still do so.
void kill_device(int error, int device = 0);

// The first call that uses a device does not return until release_starts(), as with a slow driver.
void hold_starts();
void release_starts();

// cudaEventQuery does not return until release_queries().
void hold_queries();
void release_queries();

// No copy begins until release_copies().
void hold_copies();
void release_copies();
// No operation on the stream begins until release(). `stream` is a cudaStream_t.
void hold(void* stream);
void release(void* stream);

// Device memory at an address for the host. Requires: it is memory of a device, or opened.
std::byte* host_view(const void* device_pointer);

// Calls of a function of CUDA or gpu/cuda/kernels.h so far.
std::uint64_t calls(std::string_view function);
// Calls so far that wait for the device, or may wait: sync, event sync, blocking copies, and calls
// that allocate, free, register or unregister memory. A hot path has none.
std::uint64_t waiting_calls();
// Asynchronous copies from or to pages that are not locked: CUDA may wait in them.
std::uint64_t pageable_copies();

// The resources that were not freed, a line each; empty if all were. Resources of a dead device are
// lost anyway and do not count.
std::string leaks();

}  // namespace millrace::test::simulated_cuda
