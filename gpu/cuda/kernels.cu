// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/kernels.h"

#include <cuda_runtime_api.h>

#include "gpu/cuda/calls.h"
#include "gpu/cuda/expand_kernel.h"
#include "gpu/cuda/row_kernels.h"

namespace millrace::cuda {

namespace {

template <class Task>
__global__ void __launch_bounds__(threads_per_block) run(const __grid_constant__ Task task) {
  task(Thread{blockIdx.x, threadIdx.x});
}

// Launches tasks on `stream`. A grid may have 2^31 - 1 blocks: more than a device has memory for.
auto on(DeviceStream stream, const char* what) {
  return [stream, what]<class Task>(const Task& task) {
    const auto blocks = static_cast<unsigned>(task.blocks());
    (void)cudaGetLastError();  // clears the error of an earlier call
    run<<<blocks, threads_per_block, 0, static_cast<cudaStream_t>(stream)>>>(task);
    check(cudaGetLastError(), what);
  };
}

}  // namespace

void expand(const SlabRows& rows, const RowFormat& format, std::byte* tensor, DeviceStream stream) {
  with_expand(rows, format, tensor, on(stream, "expanding rows"));
}

void load_expand(const RowFormat& format) {
  with_expand({.rows = 1, .width = 1}, format, nullptr, []<class Task>(const Task&) {
    cudaFuncAttributes attributes{};
    check(cudaFuncGetAttributes(&attributes, run<Task>), "loading a kernel");
  });
}

void reset_rows(const Arena& arena, const std::int32_t* slot, const std::uint8_t* reset,
                std::uint32_t rows, DeviceStream stream) {
  with_reset(arena, slot, reset, rows, on(stream, "resetting rows"));
}

void gather_rows(const Arena& arena, const std::int32_t* slot, std::uint32_t rows, std::byte* to,
                 DeviceStream stream) {
  with_gather(arena, slot, rows, to, on(stream, "gathering rows"));
}

void scatter_rows(const Arena& arena, const std::int32_t* slot, std::uint32_t rows,
                  const std::byte* from, DeviceStream stream) {
  with_scatter(arena, slot, rows, from, on(stream, "scattering rows"));
}

}  // namespace millrace::cuda
