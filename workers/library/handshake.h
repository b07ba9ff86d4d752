// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "schemas/worker_messages.h"
#include "workers/library/device.h"
#include "workers/library/worker.h"
#include "workers/plan/step_order.h"

namespace millrace {

// The first message of a worker with these settings.
worker_protocol::Hello hello_of(const WorkerSettings& settings, const WorkerDevice& device);

// The steps that a trainer expects; nullopt for other workers. Throws WorkerError if the service
// has no plan.
std::optional<StepOrder> order_of(const WorkerSettings& settings,
                                  const worker_protocol::Welcome& welcome);

}  // namespace millrace
