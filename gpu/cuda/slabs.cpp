// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/slabs.h"

#include <bit>
#include <chrono>
#include <utility>

#include "base/quiet_thread.h"
#include "gpu/cuda/reader.h"

namespace millrace::cuda {

namespace {

// One copy in 16 is timed: to time a copy takes one more event record.
constexpr std::uint64_t timing_interval = 16;

// The interval of polling for a slab that the device was not done with when it was given back. That
// is rare: a worker that reads its answers from the device has waited for it.
constexpr auto poll_period = std::chrono::microseconds(200);

bool can_share(int ordinal) {
  int yes = 0;
  check(cudaDeviceGetAttribute(&yes, cudaDevAttrIpcEventSupport, ordinal), "querying a device");
  return yes != 0;
}

DeviceHandle handle_of(const Event& event) {
  cudaIpcEventHandle_t native;
  check(cudaIpcGetEventHandle(&native, event.get()), "sharing an event");
  return std::bit_cast<DeviceHandle>(native);
}

DeviceHandle handle_of(const Memory& memory) {
  cudaIpcMemHandle_t native;
  check(cudaIpcGetMemHandle(&native, memory.get()), "sharing device memory");
  return std::bit_cast<DeviceHandle>(native);
}

}  // namespace

CudaSlabs::CudaSlabs(const FoundDevice& device, const SlabSettings& settings, const SlabRing& ring,
                     DeviceReports reports)
    : ordinal_(device.ordinal),
      ring_(ring),
      reports_(std::move(reports)),
      lost_(*settings.lost),
      bytes_(*settings.bytes, whole_blocks(ring.memory().size())),
      waits_(4 * std::size_t{ring.slabs()}) {
  if (!bytes_)
    throw DeviceFailure(DeviceFault::out_of_memory,
                        "the slabs of this worker would exceed [gpu] slab_bytes of " + device.name);
  try {
    acquire_resources();
  } catch (const DeviceFailure& failure) {
    if (failure.recoverable()) throw;
    if (is_alive(ordinal_)) throw DeviceFailure(failure.fault(), failure.what(), true);
    abandon();
    throw;
  }
  thread_ = quiet_thread("millrace-copies", [this] { run(); });
}

void CudaSlabs::acquire_resources() {
  const OnDevice on(ordinal_);
  pages_ = lock_slabs(ring_.memory(), ring_.slab_bytes());
  memory_ = allocate(whole_blocks(ring_.memory().size()));
  stream_ = make_stream();
  share();
}

// Copies under way end in any case: they wait for no other process.
CudaSlabs::~CudaSlabs() {
  waits_.close();
  thread_.join();
  if (lost_)
    abandon();
  else
    release_resources();
}

// Frees everything, with its device as the current one.
void CudaSlabs::release_resources() try {
  const OnDevice on(ordinal_);
  slabs_.clear();
  stream_.reset();
  memory_.reset();
  pages_.clear();
} catch (const DeviceFailure&) {
}

// Leaks everything: a dead context must not be called again, not even to free.
void CudaSlabs::abandon() {
  for (LockedPages& pages : pages_) (void)pages.release();
  (void)memory_.release();
  (void)stream_.release();
  for (Slab& slab : slabs_)
    for (Event* event : {&slab.copied, &slab.finished, &slab.begun, &slab.ended})
      (void)event->release();
}

// Makes the slabs and, if possible, their handles. In some containers memory can be shared with
// other processes, but events cannot. Then there are no handles.
void CudaSlabs::share() try {
  if (!can_share(ordinal_) || !begins_block(memory_)) return make_slabs(0);
  make_slabs(cudaEventInterprocess);
  DeviceHandles handles{.memory = handle_of(memory_), .copied = {}, .finished = {}};
  for (const Slab& slab : slabs_) {
    handles.copied.push_back(handle_of(slab.copied));
    handles.finished.push_back(handle_of(slab.finished));
  }
  handles_ = std::move(handles);
} catch (const DeviceFailure& failure) {
  if (!failure.recoverable()) throw;
  make_slabs(0);
}

void CudaSlabs::make_slabs(unsigned sharing) {
  slabs_.clear();
  for (std::uint32_t i = 0; i < ring_.slabs(); ++i)
    slabs_.push_back({.copied = make_event(cudaEventDisableTiming | sharing),
                      .finished = make_event(cudaEventDisableTiming | sharing),
                      .begun = make_event(cudaEventDefault),
                      .ended = make_event(cudaEventBlockingSync)});
}

Copying CudaSlabs::copy(std::uint32_t index, const SlabShape& shape) {
  if (has_failed()) return Copying::failed;
  Slab& slab = slabs_[index];
  slab.bytes = layout_of(shape).bytes;
  slab.timed = copies_++ % timing_interval == 0;
  try {
    start(slab, index);
  } catch (const DeviceFailure& failure) {
    fail(failure);
    return Copying::failed;
  }
  (void)waits_.try_push({.slab = index});
  return Copying::under_way;
}

void CudaSlabs::start(Slab& slab, std::uint32_t index) {
  const OnDevice on(ordinal_);
  const auto record = [this](const Event& event) {
    check(cudaEventRecord(event.get(), stream_.get()), "recording an event");
  };
  if (slab.timed) record(slab.begun);
  check(cudaMemcpyAsync(memory_.get() + index * ring_.slab_bytes(), ring_.slab(index).data(),
                        slab.bytes, cudaMemcpyHostToDevice, stream_.get()),
        "copying to the device");
  record(slab.copied);
  record(slab.ended);
}

bool CudaSlabs::give_back(std::uint32_t index) {
  if (has_failed()) return false;
  try {
    if (is_finished(index)) return true;
    (void)waits_.try_push({.slab = index, .given_back = true});
  } catch (const DeviceFailure& failure) {
    fail(failure);
  }
  return false;
}

bool CudaSlabs::is_finished(std::uint32_t index) const {
  return has_passed(slabs_[index].finished.get(),
                    "querying whether the worker has finished with a slab");
}

CopiedSlabs CudaSlabs::copied_slabs() const {
  CopiedSlabs slabs{
      .memory = memory_.get(), .slab_bytes = ring_.slab_bytes(), .copied = {}, .finished = {}};
  for (const Slab& slab : slabs_) {
    slabs.copied.push_back(slab.copied.get());
    slabs.finished.push_back(slab.finished.get());
  }
  return slabs;
}

std::unique_ptr<DeviceReader> CudaSlabs::reader(const RowFormat& format) {
  return std::make_unique<CudaReader>(ordinal_, format, source_of(copied_slabs()));
}

void CudaSlabs::run() try {
  const PreciseTimers precise;
  const OnDevice on(ordinal_);
  std::vector<std::uint32_t> given_back;
  for (;;) {
    const auto wait =
        waits_.pop_until(given_back.empty() ? Time::max() : Clock::now() + poll_period);
    if ((!wait && waits_.closed()) || has_failed()) return;
    if (wait && wait->given_back) given_back.push_back(wait->slab);
    if (wait && !wait->given_back) wait_for_copy(wait->slab);
    std::erase_if(given_back, [this](std::uint32_t slab) {
      if (!is_finished(slab)) return false;
      reports_(SlabFreed{slab});
      return true;
    });
  }
} catch (const DeviceFailure& failure) {
  fail(failure);
}

void CudaSlabs::wait_for_copy(std::uint32_t index) {
  const Slab& slab = slabs_[index];
  check(cudaEventSynchronize(slab.ended.get()), "waiting for a copy");
  CopyEnded ended{.slab = index, .at = Clock::now(), .bytes = slab.bytes};
  if (slab.timed) {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, slab.begun.get(), slab.ended.get()), "timing a copy");
    ended.took = std::chrono::duration_cast<Duration>(
        std::chrono::duration<float, std::milli>(milliseconds));
  }
  reports_(ended);
}

// Other slabs may have found that the device is dead.
bool CudaSlabs::has_failed() {
  if (lost_) fail({DeviceFault::lost, "the device has failed earlier"}, true);
  return failed_;
}

// Reports only the first failure.
void CudaSlabs::fail(const DeviceFailure& failure, bool repeated) {
  if (failed_.exchange(true)) return;
  if (!lost_ && is_dead()) lost_ = true;
  reports_(DeviceLost{failure.fault(), failure.what(), !lost_, repeated});
}

// After an error that destroyed the context every call returns it. Other errors, such as a lack of
// memory or an invalid event of another process, are returned once.
bool CudaSlabs::is_dead() const {
  const Relaxed relaxed;
  (void)cudaGetLastError();
  const cudaError_t error = cudaStreamQuery(stream_.get());
  return error != cudaSuccess && error != cudaErrorNotReady;
}

}  // namespace millrace::cuda
