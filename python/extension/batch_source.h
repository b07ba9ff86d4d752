// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/answer.h"
#include "base/companion.h"
#include "base/frame_type.h"
#include "gpu/host/device_reader.h"
#include "workers/library/worker_batch.h"

namespace millrace::python {

// The name of a stream and its options, a JSON object or empty.
struct StreamText {
  std::string name, options;
};

// The origin of the batches of Python: a worker's attachment, or the loader of a plan. It owns
// their memory, and must outlive them.
//
// use_on, done and fail are called without the GIL, and drop with it.
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  // The type of the tensors.
  virtual const FrameType& frames() const = 0;
  // Number of the CUDA device with the batches; -1: the host.
  virtual int ordinal() const = 0;
  // The companions in the order of WorkerBatch::companions().
  virtual std::span<const CompanionFormat> companions() const { return {}; }
  // True if the memory of a batch belongs to its arrays until the last of them is gone. Otherwise
  // it is valid until done() or fail().
  virtual bool lends() const { return false; }

  // The text of a stream in WorkerBatch::opened(), if the batches do not have it.
  virtual std::optional<StreamText> text_of(std::uint64_t) const { return std::nullopt; }

  // Work that is put on the stream from now on finds the batch, and may finish after the batch was
  // given back.
  virtual void use_on(const WorkerBatch& batch, DeviceStream stream) = 0;

  // Batches that are lent have no answers.
  virtual void done(WorkerBatch&, std::span<const Answer> /*answers*/,
                    std::span<const Answer> /*mark_answers*/) {}
  virtual void fail(WorkerBatch&, const std::string& /*why*/) {}

  // Nothing in Python refers to the batch or to its arrays. May be called on any thread.
  virtual void drop(WorkerBatch&) noexcept {}
};

}  // namespace millrace::python
