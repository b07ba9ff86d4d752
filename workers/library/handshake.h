// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "schemas/worker_messages.h"
#include "workers/library/device.h"
#include "workers/library/worker.h"
#include "workers/plan/step_order.h"

namespace millrace {

// The first message of a worker with these settings.
worker_protocol::Hello hello_of(const WorkerSettings& settings, const WorkerDevice& device);

// The Welcome of the pipeline, without slabs: nothing is attached. `url`, `settings` and
// `meanwhile` are as for Worker, and so are the errors.
worker_protocol::Welcome ask_for_description(const std::string& url, const WorkerSettings& settings,
                                             const std::function<void()>& meanwhile);

// The steps that a trainer expects; nullopt for other workers. Throws WorkerError if the service
// has no plan.
std::optional<StepOrder> order_of(const WorkerSettings& settings,
                                  const worker_protocol::Welcome& welcome);

}  // namespace millrace
