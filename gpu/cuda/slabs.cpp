// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/slabs.h"

#include <bit>
#include <chrono>
#include <utility>

#include "base/quiet_thread.h"
#include "gpu/cuda/reader.h"

namespace millrace::cuda {

namespace {

// Each copy that is timed costs a record more.
constexpr std::uint64_t timed_copies = 16;

// How often a slab is looked at whose batch was given back before the device was done with it. Only
// then: who has read its answers from the device has waited for it.
constexpr auto look_period = std::chrono::microseconds(200);

bool can_share(int ordinal) {
  int yes = 0;
  check(cudaDeviceGetAttribute(&yes, cudaDevAttrIpcEventSupport, ordinal), "asking a device");
  return yes != 0;
}

DeviceHandle handle_of(const Event& event) {
  cudaIpcEventHandle_t native;
  check(cudaIpcGetEventHandle(&native, event.get()), "sharing an event");
  return std::bit_cast<DeviceHandle>(native);
}

DeviceHandle handle_of(const Memory& memory) {
  cudaIpcMemHandle_t native;
  check(cudaIpcGetMemHandle(&native, memory.get()), "sharing memory of the device");
  return std::bit_cast<DeviceHandle>(native);
}

}  // namespace

CudaSlabs::CudaSlabs(const Found& device, const SlabSettings& settings, const SlabRing& ring,
                     DeviceReports reports)
    : ordinal_(device.ordinal),
      ring_(ring),
      reports_(std::move(reports)),
      lost_(*settings.lost),
      bytes_(*settings.bytes, whole_blocks(ring.memory().size())),
      waits_(4 * std::size_t{ring.slabs()}) {
  if (!bytes_)
    throw DeviceFailure(DeviceFault::out_of_memory,
                        "the slabs of this worker would pass [gpu] slab_bytes of " + device.name);
  try {
    take();
  } catch (const DeviceFailure& failure) {
    if (failure.passes()) throw;
    if (answers(ordinal_)) throw DeviceFailure(failure.fault(), failure.what(), true);
    abandon();
    throw;
  }
  thread_ = quiet_thread("millrace-copies", [this] { run(); });
}

void CudaSlabs::take() {
  const OnDevice on(ordinal_);
  pages_ = lock_pages(ring_.memory());
  memory_ = allocate(whole_blocks(ring_.memory().size()));
  stream_ = make_stream();
  share();
}

// Copies under way end by themselves: they wait for nobody.
CudaSlabs::~CudaSlabs() {
  waits_.close();
  thread_.join();
  if (lost_)
    abandon();
  else
    give_back();
}

// On the device that it is of.
void CudaSlabs::give_back() try {
  const OnDevice on(ordinal_);
  slabs_.clear();
  stream_.reset();
  memory_.reset();
  pages_.reset();
} catch (const DeviceFailure&) {
}

// A context that is dead is not called again, not even to give back what was in it.
void CudaSlabs::abandon() {
  (void)pages_.release();
  (void)memory_.release();
  (void)stream_.release();
  for (Slab& slab : slabs_)
    for (Event* event : {&slab.copied, &slab.finished, &slab.begun, &slab.ended})
      (void)event->release();
}

// Events that can be shared are not to be had everywhere that memory is, as in some containers.
void CudaSlabs::share() try {
  if (!can_share(ordinal_)) return make_slabs(0);
  make_slabs(cudaEventInterprocess);
  DeviceHandles handles{.memory = handle_of(memory_), .copied = {}, .finished = {}};
  for (const Slab& slab : slabs_) {
    handles.copied.push_back(handle_of(slab.copied));
    handles.finished.push_back(handle_of(slab.finished));
  }
  handles_ = std::move(handles);
} catch (const DeviceFailure& failure) {
  if (!failure.passes()) throw;
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
  if (gone()) return Copying::failed;
  Slab& slab = slabs_[index];
  slab.bytes = layout_of(shape).bytes;
  slab.timed = copies_++ % timed_copies == 0;
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
  if (gone()) return false;
  try {
    if (is_finished(index)) return true;
    (void)waits_.try_push({.slab = index, .given_back = true});
  } catch (const DeviceFailure& failure) {
    fail(failure);
  }
  return false;
}

bool CudaSlabs::is_finished(std::uint32_t index) const {
  return has_passed(slabs_[index].finished.get(), "asking for what the worker has finished");
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
  check(cudaSetDevice(ordinal_), "using a device");
  std::vector<std::uint32_t> given_back;
  for (;;) {
    const auto wait =
        waits_.pop_until(given_back.empty() ? Time::max() : Clock::now() + look_period);
    if ((!wait && waits_.closed()) || gone()) return;
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

// Other slabs of the device may have seen it die.
bool CudaSlabs::gone() {
  if (lost_) fail({DeviceFault::lost, "the device has failed before"}, true);
  return failed_;
}

// Reports the first one only.
void CudaSlabs::fail(const DeviceFailure& failure, bool told) {
  if (failed_.exchange(true)) return;
  if (!lost_ && is_dead()) lost_ = true;
  reports_(DeviceLost{failure.fault(), failure.what(), !lost_, told});
}

// What kills a context is the answer to every call from then on; what does not, as a want of memory
// or another process's event, is the answer to one.
bool CudaSlabs::is_dead() const {
  (void)cudaGetLastError();
  const cudaError_t error = cudaStreamQuery(stream_.get());
  return error != cudaSuccess && error != cudaErrorNotReady;
}

}  // namespace millrace::cuda
