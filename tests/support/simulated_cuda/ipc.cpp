// SPDX-License-Identifier: Apache-2.0
#include "tests/support/simulated_cuda/ipc.h"

#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "tests/support/simulated_cuda/breaches.h"
#include "tests/support/simulated_cuda/calls.h"
#include "tests/support/simulated_cuda/event_page.h"
#include "tests/support/simulated_cuda/events.h"
#include "tests/support/simulated_cuda/memory.h"
#include "tests/support/simulated_cuda/settings.h"
#include "tests/support/simulated_cuda/unseen.h"

namespace millrace::test::simulated_cuda {

namespace {

// The error that CUDA returns if this process cannot open the handle.
cudaError_t check(const IpcHandle& handle, IpcHandle::Kind kind) {
  if (handle.kind != kind) return cudaErrorInvalidResourceHandle;
  if (handle.process == ::getpid()) return cudaErrorDeviceUninitialized;
  if (handle.device != current_device())
    (void)breach(Breach::wrong_device, "opened while another device was current", cudaSuccess);
  return cudaSuccess;
}

// Locks the memory against being freed by its maker while this process has it open. The kernel ends
// the lock when the process ends.
bool lock_open(int descriptor) {
  struct flock lock {};
  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  return ::fcntl(descriptor, F_OFD_SETLK, &lock) == 0;
}

cudaError_t give_memory(cudaIpcMemHandle_t* handle, void* pointer) {
  const Unseen unseen;
  const Allocation* allocation = allocation_at(pointer);
  if (!handle || !allocation || allocation->pointer != pointer || allocation->opened > 0)
    return cudaErrorInvalidValue;
  IpcHandle{.kind = IpcHandle::Kind::memory,
            .process = ::getpid(),
            .descriptor = allocation->descriptor,
            .device = allocation->device,
            .bytes = allocation->bytes,
            .tag = allocation->tag}
      .to(*handle);
  return cudaSuccess;
}

cudaError_t open_memory(void** pointer, const IpcHandle& handle, unsigned flags) {
  if (!pointer || flags != cudaIpcMemLazyEnablePeerAccess) return cudaErrorInvalidValue;
  if (const cudaError_t error = check(handle, IpcHandle::Kind::memory)) return error;
  const Unseen unseen;
  if (Allocation* known = opened_by_tag(handle.tag)) {
    ++known->opened;
    *pointer = known->pointer;
    return cudaSuccess;
  }
  auto allocation = std::make_unique<Allocation>();
  allocation->bytes = handle.bytes;
  allocation->device = current_device();
  allocation->tag = handle.tag;
  allocation->opened = 1;
  allocation->descriptor = handle.open_file(allocation->mapped());
  if (allocation->descriptor < 0) return cudaErrorMapBufferObjectFailed;
  if (!lock_open(allocation->descriptor) || !map(*allocation)) {
    ::close(allocation->descriptor);
    return cudaErrorMapBufferObjectFailed;
  }
  *pointer = allocation->pointer;
  add(std::move(allocation));
  return cudaSuccess;
}

cudaError_t close_memory(void* pointer) {
  const Unseen unseen;
  Allocation* allocation = allocation_at(pointer);
  if (!allocation && was_freed(pointer))
    return breach(Breach::use_after_free, "closed twice", cudaErrorInvalidValue);
  if (!allocation || allocation->pointer != pointer || allocation->opened == 0)
    return cudaErrorInvalidValue;
  if (--allocation->opened > 0) return cudaSuccess;
  if (in_use(allocation->uses, allocation->device))
    (void)breach(Breach::freed_in_use, "memory of another process", cudaSuccess);
  retire(*allocation);
  return cudaSuccess;
}

cudaError_t give_event(cudaIpcEventHandle_t* handle, cudaEvent_t which) {
  const Event* event = find_event(which);
  if (!event) return cudaErrorInvalidResourceHandle;
  if (!handle || !event->shared() || event->opened) return cudaErrorInvalidValue;
  IpcHandle{.kind = IpcHandle::Kind::event,
            .process = ::getpid(),
            .descriptor = event->descriptor,
            .device = event->device,
            .bytes = sizeof(EventPage),
            .tag = event->page->tag}
      .to(*handle);
  return cudaSuccess;
}

cudaError_t open_event(cudaEvent_t* which, const IpcHandle& handle) {
  if (!which) return cudaErrorInvalidValue;
  if (const cudaError_t error = check(handle, IpcHandle::Kind::event)) return error;
  auto event = std::make_unique<Event>();
  event->device = current_device();
  event->flags = cudaEventInterprocess | cudaEventDisableTiming;
  event->opened = true;
  event->descriptor = handle.open_file(offsetof(EventPage, tag));
  if (event->descriptor < 0) return cudaErrorMapBufferObjectFailed;
  const bool mapped = map_page(*event);
  close_page(*event);
  if (!mapped) return cudaErrorMapBufferObjectFailed;
  *which = add(std::move(event));
  return cudaSuccess;
}

}  // namespace

int IpcHandle::open_file(std::size_t tag_at) const {
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(descriptor);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return -1;
  std::uint64_t found = 0;
  const ssize_t read = ::pread(file, &found, sizeof found, static_cast<off_t>(tag_at));
  if (read == sizeof found && found == tag) return file;
  ::close(file);
  return -1;
}

}  // namespace millrace::test::simulated_cuda

using namespace millrace::test::simulated_cuda;

extern "C" {

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer) {
  return call("cudaIpcGetMemHandle", [&] { return give_memory(handle, pointer); });
}

cudaError_t cudaIpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t handle, unsigned flags) {
  return call("cudaIpcOpenMemHandle",
              [&] { return open_memory(pointer, IpcHandle::from(handle), flags); });
}

cudaError_t cudaIpcCloseMemHandle(void* pointer) {
  return call("cudaIpcCloseMemHandle", WhenDead::let_go, [&] { return close_memory(pointer); });
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  return call("cudaIpcGetEventHandle", [&] { return give_event(handle, event); });
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  return call("cudaIpcOpenEventHandle", [&] { return open_event(event, IpcHandle::from(handle)); });
}

}  // extern "C"
