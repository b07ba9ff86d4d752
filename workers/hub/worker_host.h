// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "base/result.h"
#include "schemas/worker_messages.h"
#include "workers/hub/connection.h"
#include "workers/hub/worker_log.h"
#include "workers/lanes/lanes.h"
#include "workers/lanes/stats.h"

namespace millrace {

// The object to which the connections of workers belong: the hub of a pipeline, or the host of a
// plan. Confined to its home thread.
class WorkerHost {
 public:
  virtual ~WorkerHost() = default;

  // The first message of a connection. Answered, possibly later, with Welcome, or with Refused and
  // the end of the connection. `link` must live until the host has ended it or lost() was called.
  virtual void hello(WorkerConnection& link, const worker_protocol::Hello& hello) noexcept = 0;
  // Any later message. May end the link. Ignored if the link was ended.
  virtual void receive(WorkerConnection& link, worker_protocol::ToService message) noexcept = 0;
  // The connection has ended, or is about to end because of `why`. Must be called for each link
  // that was passed to hello(), before the link is destroyed. Does nothing if the host has ended
  // the link.
  virtual void lost(WorkerConnection& link, WorkerFailure why,
                    LossCause cause = LossCause::worker) noexcept = 0;
  // The worker sent an invalid message: sends Refused, ends the connection, and drops the worker.
  virtual void protocol_error(WorkerConnection& link, std::string_view what) noexcept = 0;
  // There is no memory to receive this worker's messages: sends Refused, ends the connection, and
  // drops the worker. Not a protocol error: the worker may attach again.
  virtual void no_room(WorkerConnection& link, std::string_view what) noexcept = 0;

  // The answer to Describe: a Welcome without slabs, or a refusal. Thread-safe.
  virtual Result<worker_protocol::Welcome, worker_protocol::Refused> description() const = 0;
  virtual const WorkerLog& log() const = 0;
  // The longest batch in bytes, as a worker on another machine receives it. Thread-safe.
  virtual std::size_t batch_bytes() const = 0;
  // The most bytes of messages of clients in a batch.
  virtual std::size_t post_bytes() const { return 0; }
};

}  // namespace millrace
