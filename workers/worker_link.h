// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/time.h"
#include "schemas/worker_codec.h"
#include "transport/file_descriptor.h"
#include "workers/worker_wire.h"

namespace millrace {

// A worker's connection to the service: decoded messages in, bytes out, and when either last
// happened. Nothing but wait() blocks. Throws WorkerError where the connection is of no more use.
//
// Confined to one thread, but for wait(), which looks at the descriptors only.
class WorkerLink {
 public:
  // To a worker url; empty: the default one. `meanwhile` is as a Worker's.
  WorkerLink(const std::string& url, const std::function<void()>& meanwhile);

  // The next message, if one is complete.
  std::optional<worker_protocol::ToWorker> receive();
  void reuse(worker_protocol::HandedBatch&& batch) { decoder_.reuse(std::move(batch)); }
  FileDescriptor take_descriptor() { return wire_->take_descriptor(); }

  // False: nothing was taken, too much waits to be sent.
  bool try_send(Bytes message);
  void flush() { wire_->flush(); }
  void end() { wire_->end(); }
  bool has_output() const { return wire_->has_output(); }

  // Until there is a message or room, or `wake` is readable, or the deadline.
  void wait(Time deadline, WorkerWire::Until until, int wake) const;

  Time heard() const { return heard_; }
  Time sent() const { return sent_; }

 private:
  std::unique_ptr<WorkerWire> wire_;
  worker_protocol::Decoder decoder_;
  Time heard_ = Clock::now(), sent_ = Clock::now();
};

}  // namespace millrace
