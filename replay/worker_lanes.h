// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "replay/replay_pipeline.h"
#include "service/config/address.h"
#include "workers/hub/hub.h"
#include "workers/hub/worker_log.h"

namespace millrace {

// Where workers attach.
struct WorkersAddress {
  std::string path{};               // the path of the Unix socket; empty: TCP
  std::optional<TcpAddress> tcp{};  // nullopt: the Unix socket
};
// The address of "unix:PATH" or "tcp://ADDRESS:PORT"; nullopt for another text.
std::optional<WorkersAddress> workers_address(const std::string& url);

// The lanes of a replay, as in a service: the hub of one pipeline on a home thread, and the
// listener to which workers attach. Rows are added to hub(). The functions are thread-safe.
class WorkerLanes {
 public:
  // The limit on live streams: bounds the mailboxes, whose memory grows with their content.
  static constexpr std::uint64_t most_streams = 1'000'000;

  // Listens at once. `log` gets notices about workers, on the home thread. Throws
  // std::runtime_error that names the address.
  WorkerLanes(const ReplayPipeline& pipeline, const WorkersAddress& address, WorkerLog log);
  // Sends Bye to the workers, and ends the thread. Streams that are open end with it.
  ~WorkerLanes();

  // The hub, of which open(), add() and stream_budget() may be used.
  Hub& hub();
  // The number of attached workers.
  std::uint64_t workers() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace
