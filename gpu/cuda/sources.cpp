// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/sources.h"

#include <bit>
#include <utility>

namespace millrace::cuda {

namespace {

class CopiedSource : public SlabSource {
 public:
  explicit CopiedSource(CopiedSlabs slabs) : slabs_(std::move(slabs)) {}

  std::uint32_t slabs() const override { return static_cast<std::uint32_t>(slabs_.copied.size()); }
  std::size_t slab_bytes() const override { return slabs_.slab_bytes; }

  bool has_arrived(std::uint32_t slab) const override {
    return has_passed(slabs_.copied[slab], "querying a slab");
  }
  std::byte* acquire(std::uint32_t slab, std::size_t, MutableBytes, cudaStream_t stream) override {
    check(cudaStreamWaitEvent(stream, slabs_.copied[slab], 0), "waiting for a slab");
    return slabs_.memory + slab * slabs_.slab_bytes;
  }
  void release(std::uint32_t slab, cudaStream_t stream) override {
    check(cudaEventRecord(slabs_.finished[slab], stream), "recording an event");
  }

 private:
  const CopiedSlabs slabs_;
};

struct CloseMemory {
  void operator()(std::byte* memory) const { free_with<void*>(cudaIpcCloseMemHandle, memory); }
};

Event open_event(const DeviceHandle& handle) {
  const auto native = std::bit_cast<cudaIpcEventHandle_t>(handle);
  cudaEvent_t event = nullptr;
  check(cudaIpcOpenEventHandle(&event, native), "opening the service's events");
  return Event(event);
}

std::vector<Event> open_events(const std::vector<DeviceHandle>& handles) {
  std::vector<Event> events;
  for (const DeviceHandle& handle : handles) events.push_back(open_event(handle));
  return events;
}

std::vector<cudaEvent_t> raw(const std::vector<Event>& events) {
  std::vector<cudaEvent_t> raw;
  for (const Event& event : events) raw.push_back(event.get());
  return raw;
}

// The slabs of another process: what was opened, and the source that reads it.
class OpenedSource : public SlabSource {
 public:
  OpenedSource(std::size_t slab_bytes, const DeviceHandles& handles)
      : memory_(open_memory(handles.memory)),
        copied_(open_events(handles.copied)),
        finished_(open_events(handles.finished)),
        slabs_({memory_.get(), slab_bytes, raw(copied_), raw(finished_)}) {}

  std::uint32_t slabs() const override { return slabs_.slabs(); }
  std::size_t slab_bytes() const override { return slabs_.slab_bytes(); }
  bool has_arrived(std::uint32_t slab) const override { return slabs_.has_arrived(slab); }
  // No wait on the stream: if the service is killed during the copy, its event never passes.
  std::byte* acquire(std::uint32_t slab, std::size_t, MutableBytes, cudaStream_t) override {
    return memory_.get() + slab * slabs_.slab_bytes();
  }
  void release(std::uint32_t slab, cudaStream_t stream) override { slabs_.release(slab, stream); }

 private:
  using Opened = std::unique_ptr<std::byte, CloseMemory>;

  static Opened open_memory(const DeviceHandle& handle) {
    const auto native = std::bit_cast<cudaIpcMemHandle_t>(handle);
    void* memory = nullptr;
    check(cudaIpcOpenMemHandle(&memory, native, cudaIpcMemLazyEnablePeerAccess),
          "opening the service's slabs");
    return Opened(static_cast<std::byte*>(memory));
  }

  Opened memory_;
  std::vector<Event> copied_, finished_;
  CopiedSource slabs_;
};

class CopyingSource : public SlabSource {
 public:
  CopyingSource(std::uint32_t slabs, std::size_t slab_bytes, MutableBytes pinned)
      : slab_bytes_(slab_bytes),
        memory_(allocate(slabs * slab_bytes)),
        pages_(lock_slabs(pinned, slab_bytes)) {
    for (std::uint32_t slab = 0; slab < slabs; ++slab)
      read_.push_back(make_event(cudaEventDisableTiming | cudaEventBlockingSync));
  }

  std::uint32_t slabs() const override { return static_cast<std::uint32_t>(read_.size()); }
  std::size_t slab_bytes() const override { return slab_bytes_; }

  bool has_arrived(std::uint32_t) const override { return true; }
  std::byte* acquire(std::uint32_t slab, std::size_t bytes, MutableBytes host,
                     cudaStream_t stream) override {
    std::byte* const at = memory_.get() + slab * slab_bytes_;
    check(cudaMemcpyAsync(at, host.data(), bytes, cudaMemcpyHostToDevice, stream),
          "copying a slab");
    check(cudaEventRecord(read_[slab].get(), stream), "recording an event");
    return at;
  }
  // The service may write the slab as soon as the worker has returned it. The copy has ended long
  // before, unless the batch was given back without being read.
  void release(std::uint32_t slab, cudaStream_t) override {
    check(cudaEventSynchronize(read_[slab].get()), "waiting for the copy of a slab");
  }

 private:
  std::size_t slab_bytes_;
  Memory memory_;
  std::vector<LockedPages> pages_;  // by slab
  std::vector<Event> read_;         // by slab: the copy has read it on the host
};

}  // namespace

std::unique_ptr<SlabSource> source_of(CopiedSlabs slabs) {
  return std::make_unique<CopiedSource>(std::move(slabs));
}

std::unique_ptr<SlabSource> open_source(std::size_t slab_bytes, const DeviceHandles& handles) {
  return std::make_unique<OpenedSource>(slab_bytes, handles);
}

std::unique_ptr<SlabSource> copying_source(std::uint32_t slabs, std::size_t slab_bytes,
                                           MutableBytes pinned) {
  return std::make_unique<CopyingSource>(slabs, slab_bytes, pinned);
}

}  // namespace millrace::cuda
