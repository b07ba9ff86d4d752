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

// The connection to one worker, as the hub sees it. Implemented by who owns the socket; confined
// to the pipeline's home thread.
class WorkerConnection {
 public:
  virtual ~WorkerConnection() = default;

  // Sends a message, a descriptor with it if that is not -1. Nothing blocks; a worker that does
  // not read is cut once too much waits.
  virtual void send(Bytes message, int descriptor = -1) = 0;
  // Bytes that wait to be sent.
  virtual std::size_t unsent() const = 0;
  // Whether the worker has not hung up, as far as is known now.
  virtual bool is_connected() const = 0;
  // The process at its other end, by those that are known; null if that is on another machine: it
  // shares no memory, so tensors are sent. Throws std::system_error where descriptors are short.
  virtual std::shared_ptr<PeerProcess> process(PeerProcesses& known) = 0;
  // Ends the connection once all of it is sent. Nothing is received any more.
  virtual void end() = 0;

  // Sends the reason, and ends the connection.
  void refuse(const worker_protocol::Refused& why);
  // Sends Bye, and ends the connection.
  void say_bye();
};

// A worker or watcher that was welcomed, and how many others take batches as it knows it.
struct AttachedPeer {
  WorkerConnection* link = nullptr;
  std::string name;
  std::optional<std::uint32_t> others = {};

  // At once where it matters, whether there is another. Other changes take the place of a
  // heartbeat: with many workers each attachment would send a message to each of them.
  void announce(std::uint32_t others_now);
  // A heartbeat, or, if it has changed, the number of others. Unread messages do as well: they show
  // that the service lives, and do not grow.
  void beat(std::uint32_t others_now);
};

}  // namespace millrace
