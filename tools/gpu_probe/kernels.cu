// SPDX-License-Identifier: Apache-2.0
#include "tools/gpu_probe/kernels.h"

#include "gpu/cuda/calls.h"

namespace millrace::probe {

namespace {

using Counter = unsigned long long;  // the type that atomicAdd() takes
static_assert(sizeof(Counter) == sizeof(std::uint64_t));

constexpr unsigned threads = 1024;

// A module that the driver has to compile.
constexpr char module_text[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry nothing() { ret; }\n";

// A block for each multiprocessor.
unsigned blocks() {
  int device = 0, processors = 0;
  cuda::check(cudaGetDevice(&device), "querying the current device");
  cuda::check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
              "querying a device");
  return static_cast<unsigned>(processors);
}

std::uint64_t nanoseconds(Duration time) { return static_cast<std::uint64_t>(time.count()); }

__device__ std::uint64_t now() {
  std::uint64_t time = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}

__global__ void gate(volatile GateWords* words, std::uint32_t number, std::uint64_t longest) {
  const std::uint64_t begun = now();
  while (static_cast<std::int32_t>(words->opened - number) < 0) {
    if (now() - begun < longest) continue;
    words->timed_out = number;
    return;
  }
}

__global__ void spin(std::uint64_t duration, Counter* work) {
  const std::uint64_t begun = now();
  Counter rounds = 0;
  while (now() - begun < duration) ++rounds;
  if (threadIdx.x == 0) atomicAdd(work, rounds);
}

__global__ void read(const volatile std::uint32_t* memory, std::size_t words,
                     std::uint32_t expected, std::uint64_t duration, Counter* wrong) {
  const std::uint64_t begun = now();
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  Counter others = 0;
  do {
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < words; i += step)
      others += memory[i] != expected ? 1 : 0;
  } while (now() - begun < duration);
  if (others > 0) atomicAdd(wrong, others);
}

}  // namespace

void put_gate(cudaStream_t stream, GateWords* words, std::uint32_t number, Duration longest) {
  gate<<<1, 1, 0, stream>>>(words, number, nanoseconds(longest));
  cuda::check(cudaGetLastError(), "holding a stream");
}

void put_spin(cudaStream_t stream, Duration duration, std::uint64_t* work) {
  spin<<<blocks(), threads, 0, stream>>>(nanoseconds(duration), reinterpret_cast<Counter*>(work));
  cuda::check(cudaGetLastError(), "launching a kernel");
}

void put_reader(cudaStream_t stream, const std::byte* memory, std::size_t words,
                std::uint32_t expected, Duration duration, std::uint64_t* wrong) {
  read<<<blocks(), threads, 0, stream>>>(reinterpret_cast<const std::uint32_t*>(memory), words,
                                         expected, nanoseconds(duration),
                                         reinterpret_cast<Counter*>(wrong));
  cuda::check(cudaGetLastError(), "launching a kernel");
}

bool load_module() {
  cudaLibrary_t library = nullptr;
  if (cudaLibraryLoadData(&library, module_text, nullptr, nullptr, 0, nullptr, nullptr, 0) !=
      cudaSuccess)
    return false;
  // The driver loads a module when a kernel of it is first used.
  cudaKernel_t kernel = nullptr;
  cudaFuncAttributes attributes{};
  const bool loaded = cudaLibraryGetKernel(&kernel, library, "nothing") == cudaSuccess &&
                      cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess;
  cuda::ignore(cudaLibraryUnload(library));
  return loaded;
}

}  // namespace millrace::probe
