// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu/host/device_reader.h"
#include "schemas/worker_messages.h"
#include "workers/library/worker_batch.h"

namespace millrace {

// The number of rows and of columns of a batch.
struct BatchSize {
  std::uint32_t rows = 0, width = 0;
  bool operator==(const BatchSize&) const = default;
};

// The sizes with which a model warms up, the largest first: each of the pipeline's row_buckets with
// each of its width_buckets. Without row_buckets, batches have any number of rows: the sizes are
// those of one row and of the most rows.
std::vector<BatchSize> warm_up_sizes(const worker_protocol::Welcome& pipeline);

// Batches with which a model warms up before its worker attaches, one of each of warm_up_sizes().
// They are made in this process, on the host or on the worker's device, and need no service. So a
// model may compile for as long as it needs:
//
//   const auto pipeline = describe(url, settings);
//   WarmUp warm_up(pipeline, settings.device);
//   while (auto batch = warm_up.next()) {
//     compute(*batch);
//     warm_up.done(*batch);
//   }
//   Worker worker(url, settings);
//
// The values are zeros. Each row is the only one of its own stream, with the flags of a first and
// of a last row. So the state of its slot is void after it. The service has no stream with such an
// id.
//
// The functions are as those of Worker, which see. Confined to one thread.
class WarmUp {
 public:
  // `pipeline` comes from describe(). Throws WorkerError if the device does not exist or fails.
  explicit WarmUp(const worker_protocol::Welcome& pipeline, const std::string& device = "host");
  ~WarmUp();
  WarmUp(WarmUp&&) noexcept;
  WarmUp& operator=(WarmUp&&) noexcept;

  // The next batch; nullopt after the last one. Requires: the batch before was returned.
  std::optional<WorkerBatch> next();
  void use_on(const WorkerBatch& batch, DeviceStream stream);
  // Returns the batch. Its arrays are invalid afterwards, and so are the states of its slots.
  void done(WorkerBatch& batch);

  const worker_protocol::Welcome& pipeline() const;
  int ordinal() const;  // number of the CUDA device; -1: the host

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace
