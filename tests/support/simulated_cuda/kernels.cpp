// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/kernels.h"

#include <cuda_runtime_api.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/frame_type.h"
#include "gpu/cuda/calls.h"
#include "gpu/cuda/expand_kernel.h"
#include "gpu/cuda/row_kernels.h"
#include "tests/support/simulated_cuda/breaches.h"
#include "tests/support/simulated_cuda/calls.h"
#include "tests/support/simulated_cuda/location.h"
#include "tests/support/simulated_cuda/streams.h"

// The kernels: the stream's thread runs the threads of a kernel one after the other. The addresses
// are checked before.
namespace millrace::cuda {

namespace {

using namespace test::simulated_cuda;

// A kernel before it is enqueued on a stream.
class Launch {
 public:
  explicit Launch(DeviceStream stream) : handle_(static_cast<cudaStream_t>(stream)) {
    stream_ = find_stream(handle_);
    if (!stream_)
      error_ = cudaErrorInvalidResourceHandle;
    else if (stream_->device() != current_device())
      error_ = breach(Breach::wrong_device, "the stream of another device than the current one",
                      cudaErrorInvalidResourceHandle);
  }

  // The address of the array for the kernel. Counts the array as in use until the kernel has run.
  template <class T>
  T* reach(T* array, std::size_t count) {
    return reinterpret_cast<T*>(locate(array, sizeof(T) * count).at);
  }
  // The state of the slots, and its size in bytes.
  std::pair<Arena, std::size_t> reach(const Arena& arena) {
    const Location found = locate(arena.state, arena.row_bytes);
    return {{.state = found.at, .row_bytes = arena.row_bytes}, found.bytes_left};
  }

  template <class Task>
  void run(const Task& task) {
    if (error_ != cudaSuccess) return;
    stream_->put(std::make_unique<Operation>(
        Operation::Kind::kernel, [task](auto&) { task(); }, std::move(uses_)));
  }

  cudaError_t error() const { return error_; }

 private:
  Location locate(const void* pointer, std::size_t bytes) {
    if (error_ != cudaSuccess || bytes == 0) return {};
    const Location found = location_on(stream_->device(), pointer, bytes);
    error_ = found.error;
    if (found.error == cudaSuccess) uses_.emplace_back(*found.uses);
    return found;
  }

  cudaStream_t handle_;
  test::simulated_cuda::Stream* stream_ = nullptr;
  cudaError_t error_ = cudaSuccess;
  std::vector<MemoryUse> uses_;
};

constexpr auto here = [](const auto& task) { run_here(task); };

// True if every slot is inside the state. Checked when the kernel runs, because the slots are in
// device memory.
bool lie_inside(const Arena& arena, std::size_t bytes_left, const std::int32_t* slot,
                std::uint32_t rows) {
  for (std::uint32_t row = 0; row < rows; ++row)
    if (slot[row] < 0 || (static_cast<std::size_t>(slot[row]) + 1) * arena.row_bytes > bytes_left) {
      (void)breach(Breach::outside_allocation, "a slot that the state has not", cudaSuccess);
      return false;
    }
  return true;
}

}  // namespace

void load_expand(const RowFormat&) {
  check(call("load_expand", [] { return cudaSuccess; }), "loading a kernel");
}

void expand(const SlabRows& rows, const RowFormat& format, std::byte* tensor, DeviceStream stream) {
  const std::size_t values = std::size_t{rows.rows} * rows.width * format.values;
  const auto put = [&] {
    Launch launch(stream);
    SlabRows inside = rows;
    inside.frames = launch.reach(rows.frames, values * size_of(format.frames));
    inside.left = launch.reach(rows.left, rows.rows);
    inside.size = launch.reach(rows.size, rows.rows);
    inside.right = launch.reach(rows.right, rows.rows);
    std::byte* const to = launch.reach(tensor, values * size_of(format.dtype));
    launch.run([inside, format, to] { with_expand(inside, format, to, here); });
    return launch.error();
  };
  check(call("expand", put), "cannot expand rows");
}

void reset_rows(const Arena& arena, const std::int32_t* slot, const std::uint8_t* reset,
                std::uint32_t rows, DeviceStream stream) {
  const auto put = [&] {
    Launch launch(stream);
    const auto [state, bytes_left] = launch.reach(arena);
    const std::int32_t* slots = launch.reach(slot, rows);
    const std::uint8_t* resets = launch.reach(reset, rows);
    launch.run([state = state, bytes_left = bytes_left, slots, resets, rows] {
      if (lie_inside(state, bytes_left, slots, rows)) with_reset(state, slots, resets, rows, here);
    });
    return launch.error();
  };
  check(call("reset_rows", put), "cannot reset rows");
}

void gather_rows(const Arena& arena, const std::int32_t* slot, std::uint32_t rows, std::byte* to,
                 DeviceStream stream) {
  const auto put = [&] {
    Launch launch(stream);
    const auto [state, bytes_left] = launch.reach(arena);
    const std::int32_t* slots = launch.reach(slot, rows);
    std::byte* const out = launch.reach(to, rows * arena.row_bytes);
    launch.run([state = state, bytes_left = bytes_left, slots, out, rows] {
      if (lie_inside(state, bytes_left, slots, rows)) with_gather(state, slots, rows, out, here);
    });
    return launch.error();
  };
  check(call("gather_rows", put), "cannot gather rows");
}

void scatter_rows(const Arena& arena, const std::int32_t* slot, std::uint32_t rows,
                  const std::byte* from, DeviceStream stream) {
  const auto put = [&] {
    Launch launch(stream);
    const auto [state, bytes_left] = launch.reach(arena);
    const std::int32_t* slots = launch.reach(slot, rows);
    const std::byte* const in = launch.reach(from, rows * arena.row_bytes);
    launch.run([state = state, bytes_left = bytes_left, slots, in, rows] {
      if (lie_inside(state, bytes_left, slots, rows)) with_scatter(state, slots, rows, in, here);
    });
    return launch.error();
  };
  check(call("scatter_rows", put), "cannot scatter rows");
}

}  // namespace millrace::cuda
