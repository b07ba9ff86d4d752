// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/calls.h"

#include <cuda.h>

#include <string>

namespace millrace::cuda {

namespace {

// A function of the driver that the runtime does not have; null if the driver does not have it.
template <class Function>
Function* driver_function(const char* name) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &entry, 7000, cudaEnableDefault, &found);
  ignore(error);
  const bool there = error == cudaSuccess && found == cudaDriverEntryPointSuccess;
  return there ? reinterpret_cast<Function*>(entry) : nullptr;
}

// True if this process has a context on the device.
bool is_in_use(int ordinal) {
  // Looked up once: every copy uses it.
  static auto* const get_state =
      driver_function<CUresult(CUdevice, unsigned*, int*)>("cuDevicePrimaryCtxGetState");
  unsigned flags = 0;
  int active = 0;
  return get_state && get_state(ordinal, &flags, &active) == CUDA_SUCCESS && active != 0;
}

// Makes the device the current one. Returns the previous one to restore, or -1.
int select(int ordinal) {
  int current = 0;
  check(cudaGetDevice(&current), "querying the current device");
  const int previous = current != ordinal && is_in_use(current) ? current : -1;
  check(cudaSetDevice(ordinal), "selecting a device");
  return previous;
}

DeviceFault fault_of(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation: return DeviceFault::out_of_memory;
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained: return DeviceFault::ecc;
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
    case cudaErrorHardwareStackError: return DeviceFault::illegal_access;
    case cudaErrorLaunchFailure:
    case cudaErrorAssert: return DeviceFault::launch;
    case cudaErrorLaunchTimeout: return DeviceFault::timeout;
    case cudaErrorContextIsDestroyed:
    case cudaErrorDeviceUninitialized:
    case cudaErrorMpsClientTerminated:
    case cudaErrorMpsRpcFailure:
    case cudaErrorNoDevice:
    case cudaErrorUnknown:
    case cudaErrorExternalDevice:
    case cudaErrorTensorMemoryLeak: return DeviceFault::lost;
    default: return DeviceFault::other;
  }
}

DeviceFailure failure(cudaError_t error, const char* what) {
  return {fault_of(error), std::string(what) + ": " + cudaGetErrorString(error)};
}

}  // namespace

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  (void)cudaGetLastError();  // clears the error
  throw failure(error, what);
}

bool has_passed(cudaEvent_t event, const char* what) {
  const Relaxed relaxed;
  const cudaError_t error = cudaEventQuery(event);
  if (error == cudaErrorNotReady) {
    (void)cudaGetLastError();
    return false;
  }
  check(error, what);
  return true;
}

OnDevice::OnDevice(int ordinal) : previous_(select(ordinal)) {}

OnDevice::~OnDevice() {
  if (previous_ >= 0) ignore(cudaSetDevice(previous_));
}

bool is_alive(int ordinal) try {
  const OnDevice on(ordinal);
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "querying the memory of a device");
  return true;
} catch (const DeviceFailure&) {
  return false;
}

Event make_event(unsigned flags) {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, flags), "creating an event");
  return Event(event);
}

Stream make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a CUDA stream");
  return Stream(stream);
}

Stream make_urgent_stream() {
  int highest = 0;
  check(cudaDeviceGetStreamPriorityRange(nullptr, &highest), "querying a device");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, highest),
        "creating a CUDA stream");
  return Stream(stream);
}

Memory allocate(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), "allocating device memory");
  return Memory(static_cast<std::byte*>(memory));
}

bool begins_block(const Memory& memory) {
  auto* const get_range =
      driver_function<CUresult(CUdeviceptr*, std::size_t*, CUdeviceptr)>("cuMemGetAddressRange");
  const auto begin = reinterpret_cast<CUdeviceptr>(memory.get());
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  return get_range && get_range(&base, &bytes, begin) == CUDA_SUCCESS && base == begin;
}

LockedPages lock_pages(MutableBytes pages) {
  const cudaError_t error = cudaHostRegister(pages.data(), pages.size(), cudaHostRegisterDefault);
  ignore(error);
  return LockedPages(error == cudaSuccess ? pages.data() : nullptr);
}

std::vector<LockedPages> lock_slabs(MutableBytes memory, std::size_t slab_bytes) {
  std::vector<LockedPages> locked;
  for (; !memory.empty(); memory = memory.subspan(slab_bytes))
    if (!locked.emplace_back(lock_pages(memory.first(slab_bytes)))) return {};
  return locked;
}

}  // namespace millrace::cuda
