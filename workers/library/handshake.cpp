// SPDX-License-Identifier: Apache-2.0
#include "workers/library/handshake.h"

#include <errno.h>
#include <unistd.h>

#include <string>

#include "workers/plan/plan_text.h"

namespace millrace {

using namespace worker_protocol;

Hello hello_of(const WorkerSettings& settings, const WorkerDevice& device) {
  return {.pipeline = settings.pipeline,
          .name = settings.name.empty() ? std::string(::program_invocation_short_name) + " " +
                                              std::to_string(::getpid())
                                        : settings.name,
          .credits = settings.watch ? 0 : settings.credits,
          .device = device.name_for_service(),
          .watch = settings.watch,
          .alone = settings.alone,
          .trainer = settings.trainer};
}

std::optional<StepOrder> order_of(const WorkerSettings& settings, const Welcome& welcome) {
  if (!settings.trainer) return std::nullopt;
  const auto plan = read_plan(welcome.plan);
  if (!plan) throw WorkerError("the service did not send a plan: it has no batches for training");
  return StepOrder(*settings.trainer, plan->steps);
}

}  // namespace millrace
