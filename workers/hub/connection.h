// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "schemas/worker_messages.h"
#include "workers/hub/peer_process.h"

namespace millrace {

// The connection to one worker or watcher, as the hub uses it. Implemented by the owner of the
// socket. Confined to the pipeline's home thread.
class WorkerConnection {
 public:
  virtual ~WorkerConnection() = default;

  // Queues a message, with a descriptor if that is not -1, and does not block. If the queue is
  // full, because the worker does not read, the connection is ended.
  virtual void send(Bytes message, int descriptor = -1) = 0;
  // Bytes in the queue.
  virtual std::size_t unsent() const = 0;
  // False if the worker is known to have closed its end.
  virtual bool is_connected() const = 0;
  // The worker's process, from `processes`. Null if it is on another machine: it shares no memory,
  // so tensors are sent. Throws std::system_error if the process has no free descriptors.
  virtual std::shared_ptr<PeerProcess> process(PeerProcesses& processes) = 0;
  // Ends the connection once the queue was sent. Nothing more is received.
  virtual void end() = 0;

  // Sends Refused, and ends the connection.
  void refuse(const worker_protocol::Refused& why);
  // Sends Bye, and ends the connection.
  void send_bye();
};

// A worker or watcher after Welcome.
struct AttachedPeer {
  WorkerConnection* link = nullptr;
  std::string name;
  std::optional<worker_protocol::Company> sent = {};  // the last one

  // Sends Company at once, but only if none was sent, or if the number of other workers has changed
  // from or to 0. Other changes are sent by send_heartbeat(). Otherwise each attachment of a worker
  // would cause a message to every other worker.
  void announce(const worker_protocol::Company& now);
  // Sends Heartbeat, or Company if it has changed. Sends nothing if messages are queued: those show
  // that the service lives, and the queue must not grow.
  void send_heartbeat(const worker_protocol::Company& now);
};

}  // namespace millrace
