// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/budget.h"
#include "schemas/worker_messages.h"
#include "transport/net/framed_socket.h"
#include "transport/net/net.h"
#include "workers/hub/hub.h"

namespace millrace {

// What the service accepts of a worker.
FramedLimits worker_limits();

// One worker's connection, from its Hello to its end, on the home thread of the hub. The hub must
// outlive the run of its io_context. `place` is given back at the end.
Task<> serve_worker(FramedSocket socket, worker_protocol::Hello hello, Hub& hub, Share place = {});

}  // namespace millrace
