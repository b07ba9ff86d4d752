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

void AttachedPeer::announce(std::uint32_t others_now) {
  if (others && (*others == 0) == (others_now == 0)) return;
  others = others_now;
  send(*link, wp::Company{others_now});
}

void AttachedPeer::send_heartbeat(std::uint32_t others_now) {
  if (link->unsent() > 0) return;
  if (std::exchange(others, others_now) == others_now)
    send(*link, wp::Heartbeat{});
  else
    send(*link, wp::Company{others_now});
}

}  // namespace millrace
