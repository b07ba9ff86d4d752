// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "gpu/cuda/fetcher.h"
#include "workers/library/worker.h"

namespace millrace::load {

// A batch as its worker's device has it, copied to the host: the tensor and the control arrays.
//
// Confined to the thread of the worker.
class FetchedBatch {
 public:
  // For batches of `worker`, which is on a device. Throws DeviceFailure.
  explicit FetchedBatch(const Worker& worker);

  // Copies a batch that the worker has taken, and waits for the copy. Throws WorkerError and
  // DeviceFailure.
  void fetch(Worker& worker, const WorkerBatch& batch);

  // The part of the tensor of a row with frames; empty if its control values are not those of the
  // message. They would be those of another batch if the device had the wrong slab.
  Bytes row(std::uint32_t row) const;
  // Number of padding and marker rows whose control values are not those of the message.
  std::uint64_t damaged() const { return damaged_; }

 private:
  bool has(const WorkerBatch& batch, std::size_t entry,
           const worker_protocol::RowEntry& expected) const;

  const std::size_t column_bytes_;
  const std::uint32_t padding_slot_;
  std::vector<std::byte> tensor_, controls_;
  std::unique_ptr<cuda::Fetcher> fetcher_;  // last: it waits for copies into the members above
  std::size_t row_bytes_ = 0;
  std::vector<bool> intact_;  // by row with frames
  std::uint64_t damaged_ = 0;
};

}  // namespace millrace::load
