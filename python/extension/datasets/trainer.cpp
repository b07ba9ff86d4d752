// SPDX-License-Identifier: Apache-2.0
#include "python/extension/datasets/trainer.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "python/extension/attach.h"
#include "python/extension/held_batch.h"
#include "python/extension/parts.h"
#include "python/extension/waits.h"
#include "python/extension/without_gil.h"

namespace millrace::python {
namespace {

namespace nb = nanobind;

constexpr Duration leave_limit = std::chrono::seconds(1);

// `position`: rank, world, epoch, step, stride, whether the states of the slots are lost, and
// whether it asks for the plan only.
using Position = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t, std::uint64_t,
                            std::uint64_t, bool, bool>;

void make_trainer(Trainer* into, const std::string& url, const std::string& name,
                  std::uint32_t credits, const std::string& device, const Position& position,
                  double wait, const nb::callable& on_wait, const nb::callable& meanwhile) {
  const auto [rank, world, epoch, step, stride, resets, plan_only] = position;
  WorkerSettings settings;
  settings.name = name;
  settings.credits = credits;
  settings.device = device;
  settings.trainer = worker_protocol::TrainerHello{.rank = rank,
                                                   .world = world,
                                                   .epoch = epoch,
                                                   .step = step,
                                                   .stride = stride,
                                                   .resets = resets,
                                                   .plan_only = plan_only};
  attach(into, url, std::move(settings), wait, on_wait, meanwhile);
}

nb::tuple counts(const Trainer& trainer) {
  const Trainer::Counts& all = trainer.counts();
  return nb::make_tuple(all.batches, all.frames, all.padding, all.bodies);
}

PlanText plan_of(const Worker& worker) {
  auto plan = read_plan(worker.plan());
  if (!plan) throw WorkerError("the server sent an invalid plan");
  return std::move(*plan);
}

}  // namespace

Trainer::Trainer(const std::string& url, const WorkerSettings& settings,
                 const std::function<void()>& meanwhile)
    : credits_(settings.credits),
      process_(::getpid()),
      worker_(std::make_unique<Worker>(url, settings, meanwhile)),
      plan_(plan_of(*worker_)) {}

Trainer::~Trainer() {
  if (is_forked()) {  // its thread does not exist here, and its locks may be held by it
    static_cast<void>(worker_.release());
    return;
  }
  const WithoutGil waits;
  worker_.reset();
}

std::optional<WorkerBatch> Trainer::next(std::optional<double> seconds) {
  return_dropped();
  if (taken_ >= credits_)
    throw std::runtime_error("all " + std::to_string(credits_) +
                             " buffers are in batches that are kept: keep fewer batches, or set "
                             "`buffers` to a larger number");
  auto batch = wait_for(deadline_in(seconds), [this](Time until) {
    // The end needs no further wait.
    struct Outcome {
      std::optional<WorkerBatch> batch;
      bool ended;
      explicit operator bool() const { return batch || ended; }
    };
    auto next = worker_->next_until(until);
    const bool ended = !next && worker_->ended();
    return Outcome{std::move(next), ended};
  });
  if (!batch.batch) return std::nullopt;
  ++taken_;
  count(*batch.batch);
  return std::move(batch.batch);
}

// A lost server needs no batch back: next() reports the loss.
void Trainer::return_dropped() {
  std::vector<WorkerBatch> dropped = std::exchange(dropped_, {});
  const WithoutGil waits;
  for (WorkerBatch& batch : dropped) {
    --taken_;
    try {
      worker_->done(batch);
    } catch (const WorkerError& error) {
      if (error.code() == "device") throw;
    }
  }
}

void Trainer::leave() {
  if (is_forked()) return;
  const WithoutGil waits;
  const Time limit = Clock::now() + leave_limit;
  try {
    worker_->bye();
    while (worker_->next_until(limit) || (!worker_->ended() && Clock::now() < limit)) {
    }
  } catch (const WorkerError&) {  // the server is lost
  }
  worker_->close();
}

void Trainer::drop(WorkerBatch& batch) noexcept { dropped_.push_back(std::move(batch)); }

void Trainer::count(const WorkerBatch& batch) {
  std::uint64_t windows = 0;
  for (const auto& row : batch.framed()) {
    windows += std::uint64_t{row.left} + row.size + row.right;
    counts_.bodies += row.size;
  }
  const std::uint64_t columns = std::uint64_t{batch.rows()} * batch.width();
  ++counts_.batches;
  counts_.frames += columns;
  counts_.padding += columns - windows;
}

bool Trainer::is_forked() const { return ::getpid() != process_; }

void add_trainer(nb::module_& module) {
  nb::class_<Trainer>(module, "Trainer")
      .def("__init__", &make_trainer)
      .def("next", &next_batch<Trainer>, nb::arg("seconds").none())
      .def("leave", &Trainer::leave)
      .def_prop_ro("ended", [](const Trainer& t) { return t.worker().ended(); })
      .def_prop_ro("device", [](const Trainer& t) { return t.worker().device(); })
      .def_prop_ro("welcome", [](const Trainer& t) { return welcome_of(t.worker().welcome()); })
      .def_prop_ro("plan", [](const Trainer& t) { return t.worker().plan(); })
      .def_prop_ro("counts", &counts)
      .def_prop_ro("kept", &Trainer::kept);
}

}  // namespace millrace::python
