// SPDX-License-Identifier: Apache-2.0
#include "workers/hub/connection.h"

#include <utility>

#include "schemas/worker_codec.h"

namespace millrace {

namespace wp = worker_protocol;

namespace {

void send(WorkerConnection& link, const auto& message) {
  wp::Encoder encoder;
  link.send(encoder.encode(message));
}

}  // namespace

void WorkerConnection::refuse(const wp::Refused& why) {
  millrace::send(*this, why);
  end();
}

void WorkerConnection::send_bye() {
  millrace::send(*this, wp::Bye{});
  end();
}

void AttachedPeer::announce(const wp::Company& now) {
  if (sent && (sent->workers == 0) == (now.workers == 0)) return;
  sent = now;
  send(*link, now);
}

void AttachedPeer::send_heartbeat(const wp::Company& now) {
  if (link->unsent() > 0) return;
  if (std::exchange(sent, now) == now)
    send(*link, wp::Heartbeat{});
  else
    send(*link, now);
}

}  // namespace millrace
