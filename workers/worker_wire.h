// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "transport/file_descriptor.h"

namespace millrace {

// What a worker's connection is made of: messages as bytes, to the service and from it. A Unix
// socket on the same machine, ZeroMQ over TCP from another. Nothing blocks. Throws WorkerError
// where it is of no more use.
//
// Confined to one thread, but for waits().
class WorkerWire {
 public:
  virtual ~WorkerWire() = default;

  // The next message, if one is complete. It lives until the next call.
  virtual std::optional<Bytes> receive() = 0;
  // What came with the last message.
  virtual FileDescriptor take_descriptor() = 0;

  // False: nothing was taken, too much waits to be sent.
  virtual bool try_send(Bytes message) = 0;
  // Sends of what waits as much as goes, where somebody has to.
  virtual void flush() = 0;
  virtual bool has_output() const = 0;
  // Ends the connection, and wakes who waits.
  virtual void end() = 0;

  // What to poll for until there may be a message to receive, or room to send. Wrong alarms are
  // possible.
  enum class Until { message, room, message_or_room };
  using Waits = std::array<pollfd, 3>;
  virtual Waits waits(Until until) const = 0;
};

// How often the one who waits to be attached is called back, at least.
inline constexpr std::chrono::milliseconds meanwhile_interval(100);

// The wire to a worker url; empty: the default one. Connects. Throws WorkerError, ServiceAbsent
// where no service listens, and what `meanwhile` throws.
std::unique_ptr<WorkerWire> connect_worker(const std::string& url,
                                           const std::function<void()>& meanwhile);
// The two kinds of it. A Unix socket is not waited for.
std::unique_ptr<WorkerWire> connect_local(const std::string& url);
std::unique_ptr<WorkerWire> connect_remote(const std::string& url,
                                           const std::function<void()>& meanwhile);

}  // namespace millrace
