// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "gpu/cuda/cuda.h"
#include "gpu/host/device_reader.h"
#include "schemas/worker_messages.h"

namespace millrace {

// Where a worker computes. On a device its batches are read there: in the service's slabs, or,
// where those cannot be opened, in copies that are made here. Throws WorkerError. Confined to one
// thread.
class WorkerDevice {
 public:
  // host, cuda (the first), or cuda:N as this process counts them. Takes the device into use, which
  // may last a while for the first in a process.
  explicit WorkerDevice(const std::string& name);

  // As this process calls it, and as the service does.
  const std::string& name() const { return found_ ? found_->name : host_; }
  const std::string& name_for_service() const { return found_ ? found_->uuid : host_; }
  // Of a CUDA device; -1: the host.
  int ordinal() const { return found_ ? found_->ordinal : -1; }

  // What came with Welcome; `shared` is its mapped memory, or empty where tensors come inline.
  void attach(const worker_protocol::Welcome& welcome, std::uint32_t credits, MutableBytes shared);
  // Batches are copied here though the service has copied them to the device: it is to be told.
  bool copies_in_vain() const { return copies_in_vain_; }

  // Gives back what it has of the slabs.
  void leave() { reader_.reset(); }

  // Null on the host.
  DeviceReader* reader() const { return reader_.get(); }

 private:
  const std::string host_ = "host";
  std::optional<cuda::Found> found_;
  std::unique_ptr<DeviceReader> reader_;
  bool copies_in_vain_ = false;
};

}  // namespace millrace
