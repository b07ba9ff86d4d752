// SPDX-License-Identifier: Apache-2.0
#include "workers/library/handshake.h"

#include <errno.h>
#include <unistd.h>

#include <string>

#include "workers/library/link.h"
#include "workers/plan/plan_text.h"

namespace millrace {

using namespace worker_protocol;

namespace {

std::string name_of(const WorkerSettings& settings) {
  return settings.name.empty()
             ? std::string(::program_invocation_short_name) + " " + std::to_string(::getpid())
             : settings.name;
}

}  // namespace

Hello hello_of(const WorkerSettings& settings, const WorkerDevice& device) {
  return {.pipeline = settings.pipeline,
          .name = name_of(settings),
          .credits = settings.watch ? 0 : settings.credits,
          .device = device.name_for_service(),
          .watch = settings.watch,
          .alone = settings.alone,
          .trainer = settings.trainer};
}

// A service that does not know Describe refuses it as a first message that is not a Hello.
Welcome ask_for_description(const std::string& url, const WorkerSettings& settings,
                            const std::function<void()>& meanwhile) {
  WorkerLink link(url, meanwhile);
  try {
    return link.shake_hands(Describe{.pipeline = settings.pipeline, .name = name_of(settings)},
                            meanwhile);
  } catch (const WorkerError& error) {
    if (error.code() != "protocol") throw;
    throw WorkerError(
        std::string("the service is older than this library: it cannot describe its pipelines; ") +
            error.what(),
        "version");
  }
}

std::optional<StepOrder> order_of(const WorkerSettings& settings, const Welcome& welcome) {
  if (!settings.trainer) return std::nullopt;
  const auto plan = read_plan(welcome.plan);
  if (!plan) throw WorkerError("the service did not send a plan: it has no batches for training");
  return StepOrder(*settings.trainer, plan->steps);
}

}  // namespace millrace
