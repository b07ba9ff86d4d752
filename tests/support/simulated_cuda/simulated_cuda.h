// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// A CUDA runtime without a device, for tests: the functions of cudart that gpu/ calls and those of
// gpu/cuda/kernels.h, as an object library. Linked into a program it takes the place of both, so
// that our own CUDA code runs as it was compiled, on any machine and under the sanitizers.
//
// Device memory is host memory in a memfd, filled with 0xCD; a device pointer points to it. A
// stream is a thread that does what was put on it in order, late, and with pauses. Memory and
// events can be opened by other processes that are linked with this. What CUDA promises about
// order, and nothing else of what happens in here, is visible to ThreadSanitizer: a copy that
// nobody waited for is a data race. What CUDA forbids ends the process (see Breach), or fails with
// the code that CUDA has for it.
//
// Not simulated: that the legacy stream waits for others, and they for it.
//
// The environment configures whole programs, when they first call CUDA; entries end with `;`:
//
//   MILLRACE_SIMULATED_CUDA="devices=1;fail=cudaHostRegister:801"
//
//   devices=N                  devices of the machine; 2. CUDA_VISIBLE_DEVICES chooses among them
//   memory=BYTES               of each device; 1 GiB
//   seed=N                     of the pauses; 1
//   pauses=MICROSECONDS        the longest pause; 200, and 0 for none
//   fail=FUNCTION:ERROR[:N]    the next N calls, or all, return this code and do nothing
//   dead-after-copies=N:ERROR  the copy after these kills its device
//   dead-when=PATH:ERROR       all devices die once this file exists
//   hold-copies                no copy begins
//   hold-copies-while=PATH     no copy begins while this file exists
//   stale-queries=N            every N-th query of a shared event does not see its last record
//   tolerate=BREACH            is counted only, by its name as in Breach
//   guard                      device memory cannot be touched by the host
//   calls=PATH                 at exit "FUNCTION COUNT" is written there, a line for each
//   check-leaks                at exit what was not given back ends the process with 86
//
// Thread-safe, but for reset().
namespace millrace::test::simulated_cuda {

// What no program may do, and what CUDA might not notice. The text on stderr says what and where.
enum class Breach : std::uint8_t {
  default_stream,         // something was put on stream 0
  outside_allocation,     // a copy or a kernel reaches past what was allocated
  use_after_free,         // of memory, a stream or an event
  freed_in_use,           // memory that something on a stream still reads or writes
  freed_while_open,       // memory that another process has open
  unregistered_in_use,    // pages that something on a stream still reads or writes
  unmapped_registered,    // pages went before they were unregistered
  overrun,                // a kernel wrote behind the end of its memory
  wrong_device,           // memory, stream or event of a device other than that of the call
  destroyed_elsewhere,    // an event whose maker has destroyed it
  call_in_host_function,  // CUDA is called from what cudaLaunchHostFunc runs
};
inline constexpr int breaches_known = 11;

std::string_view name_of(Breach breach);

// From now on it is counted and goes on, with the code that CUDA has for it if any.
void tolerate(Breach breach);
std::uint64_t count(Breach breach);

// As a process that has not called CUDA, and without the environment. What is left is freed.
// Requires: no other thread calls CUDA, and no other process has anything of this one's open.
void reset();

// Devices have the ordinals 0 … and UUIDs that are the same in every process.
void set_devices(int count);
void set_memory(std::uint64_t bytes);
void set_pauses(std::uint64_t seed, unsigned longest_us);

// The next `calls` calls of the function return this cudaError_t and do nothing; 0: no longer.
inline constexpr std::uint64_t all_calls = ~std::uint64_t{0};
void fail(std::string_view function, int error, std::uint64_t calls = all_calls);

// The device dies as by a kernel that went wrong: what is on its streams is dropped, events do not
// pass any more, and every call returns this cudaError_t, though those that give something back do.
void kill_device(int error, int device = 0);
// The same at the copy after the next `copies`, in place of it.
void kill_device_after(std::uint64_t copies, int error);

// The first call that uses a device, as with a slow driver, does not return until it is released.
void hold_starts();
void release_starts();

// No cudaEventQuery returns until they are released.
void hold_queries();
void release_queries();

// No copy begins until they are released.
void hold_copies();
void release_copies();
// Nothing that is on the stream begins until it is released. `stream` is a cudaStream_t.
void hold(void* stream);
void release(void* stream);

// Whether device memory that is allocated from now on is out of the host's reach: a program that
// takes a device pointer for one of its own ends with SIGSEGV.
void guard(bool on);
// Where the host reaches it nevertheless. Requires: it is memory of a device, or opened.
std::byte* host_view(const void* device_pointer);

// Calls so far: of a function of CUDA or of gpu/cuda/kernels.h, by its name.
std::uint64_t calls(std::string_view function);
// Those that wait for the device, or may: sync, event sync, blocking copies, and all that allocate,
// free, register or unregister memory. A hot path has none.
std::uint64_t waiting_calls();
// Asynchronous copies from or to pages that are not locked: CUDA may wait in them.
std::uint64_t pageable_copies();

// What was not given back, a line for each; empty where all was. What a dead device had is lost
// anyway, and does not count.
std::string leaks();

}  // namespace millrace::test::simulated_cuda
