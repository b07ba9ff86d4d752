// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/worker_messages.h"
#include "transport/local_socket.h"
#include "transport/net.h"
#include "workers/hub.h"

namespace millrace {

// What the service accepts of a worker.
LocalLimits worker_limits();

// One worker's connection, from its Hello to its end, on the home thread of the hub. The hub must
// outlive the run of its io_context.
Task<> serve_worker(LocalSocket socket, worker_protocol::Hello hello, Hub& hub);

}  // namespace millrace
