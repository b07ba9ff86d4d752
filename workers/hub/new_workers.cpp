// SPDX-License-Identifier: Apache-2.0
#include "workers/hub/new_workers.h"

#include <algorithm>
#include <exception>
#include <utility>
#include <variant>

namespace millrace {

namespace wp = worker_protocol;

std::optional<wp::Refused> NewWorkers::add(WorkerConnection& link, const wp::Hello& hello) try {
  if (hello.trainer)
    return wp::Refused{"pipeline",
                       "this pipeline has live streams for workers; it has no plan for trainers"};
  SlabOrder order{.number = next_order_++, .device = hello.device, .credits = hello.credits};
  NewWorker worker{.link = &link,
                   .name = hello.name,
                   .credits = hello.credits,
                   .alone = hello.alone,
                   .process = link.process(processes_),
                   .cancelled = order.cancelled};
  order.local = worker.process != nullptr;
  const std::uint64_t number = order.number;
  maker_.make(std::move(order));  // the slabs arrive later, in a queue
  workers_.emplace(number, std::move(worker));
  return std::nullopt;
} catch (const std::exception& error) {
  return wp::Refused{"internal", std::string("slabs cannot be created: ") + error.what()};
}

std::optional<NewWorker> NewWorkers::take(const MadeSlabs& made) {
  maker_.count_failure(made);
  auto worker = workers_.extract(made.order);
  if (!worker) return std::nullopt;
  return std::move(worker.mapped());
}

// After this process was suspended, connections may be closed already at the worker's end. Rows
// that are handed over to such a connection would become suspects.
std::optional<wp::Refused> NewWorkers::refusal(const NewWorker& worker,
                                               const MadeSlabs& made) const {
  if (!worker.link->is_connected()) return wp::Refused{"protocol", disconnected_early};
  if (!made.slabs) return made.slabs.error();
  for (const SlabReport& report : lost_devices_)
    if (concerns(report, **made.slabs)) return refusal_of(std::get<DeviceLost>(report.what));
  return std::nullopt;
}

const NewWorker* NewWorkers::find(const WorkerConnection& link) const {
  const auto of_link = [&](const auto& entry) { return entry.second.link == &link; };
  const auto found = std::ranges::find_if(workers_, of_link);
  return found == workers_.end() ? nullptr : &found->second;
}

void NewWorkers::remove(const WorkerConnection& link) {
  std::erase_if(workers_, [&](const auto& entry) {
    if (entry.second.link != &link) return false;
    *entry.second.cancelled = true;
    return true;
  });
}

void NewWorkers::refuse_all(const wp::Refused& why) {
  for (const auto& [order, worker] : std::exchange(workers_, {})) {
    *worker.cancelled = true;
    worker.link->refuse(why);
  }
}

void NewWorkers::on_slab_report(const SlabReport& report) {
  if (workers_.empty())
    lost_devices_.clear();
  else if (std::holds_alternative<DeviceLost>(report.what))
    lost_devices_.push_back(report);
}

}  // namespace millrace
