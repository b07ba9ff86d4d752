// SPDX-License-Identifier: Apache-2.0
#include "workers/hub/new_workers.h"

#include <algorithm>
#include <exception>
#include <utility>
#include <variant>

namespace millrace {

namespace wp = worker_protocol;

std::optional<wp::Refused> NewWorkers::add(WorkerConnection& link, const wp::Hello& hello) try {
  SlabOrder order{.number = next_order_++, .device = hello.device, .credits = hello.credits};
  NewWorker worker{.link = &link,
                   .name = hello.name,
                   .credits = hello.credits,
                   .alone = hello.alone,
                   .process = link.process(processes_),
                   .cancelled = order.cancelled};
  order.here = worker.process != nullptr;
  const std::uint64_t number = order.number;
  maker_.make(std::move(order));  // the slabs come later, by a queue
  workers_.emplace(number, std::move(worker));
  return std::nullopt;
} catch (const std::exception& error) {
  return wp::Refused{"internal", std::string("no slabs: ") + error.what()};
}

std::optional<NewWorker> NewWorkers::take(const MadeSlabs& made) {
  maker_.note(made);
  auto worker = workers_.extract(made.order);
  if (!worker) return std::nullopt;
  return std::move(worker.mapped());
}

// After this process was stopped, the connections that a worker gave up meanwhile still wait. Rows
// handed to one of them would count as rows of a lost worker.
std::optional<wp::Refused> NewWorkers::refusal(const NewWorker& worker,
                                               const MadeSlabs& made) const {
  if (!worker.link->is_connected()) return wp::Refused{"protocol", hung_up};
  if (!made.slabs) return made.slabs.error();
  for (const SlabReport& report : lost_)
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

void NewWorkers::note(const SlabReport& report) {
  if (workers_.empty())
    lost_.clear();
  else if (std::holds_alternative<DeviceLost>(report.what))
    lost_.push_back(report);
}

}  // namespace millrace
