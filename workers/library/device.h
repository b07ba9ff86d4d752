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

// The device on which a worker computes. On a CUDA device, batches are read from the service's
// slabs there, or, if those cannot be opened, from copies that this process makes. All functions
// throw WorkerError. Confined to one thread.
class WorkerDevice {
 public:
  // `name`: host, cuda (the first device), or cuda:N in the numbering of this process. Initializes
  // the device, which may take seconds for the first one in a process.
  explicit WorkerDevice(const std::string& name);

  // The name in this process, and the name for the service: a device's UUID.
  const std::string& name() const { return found_ ? found_->name : host_; }
  const std::string& name_for_service() const { return found_ ? found_->uuid : host_; }
  // The number of the CUDA device in this process; -1: the host.
  int ordinal() const { return found_ ? found_->ordinal : -1; }

  // Opens the slabs of `welcome`. `shared`: the mapped memory of the slabs on the host, or empty if
  // tensors are sent inline. It must outlive the use of reader().
  void attach(const worker_protocol::Welcome& welcome, std::uint32_t credits, MutableBytes shared);
  // True if the service's slabs on the device cannot be opened: the service must be informed with
  // Unmapped, because it copies batches there without need.
  bool cannot_open_slabs() const { return cannot_open_slabs_; }

  // Closes the slabs.
  void release() { reader_.reset(); }

  // Null on the host.
  DeviceReader* reader() const { return reader_.get(); }

 private:
  const std::string host_ = "host";
  std::optional<cuda::FoundDevice> found_;
  std::unique_ptr<DeviceReader> reader_;
  bool cannot_open_slabs_ = false;
};

}  // namespace millrace
