// SPDX-License-Identifier: Apache-2.0
#include "python/extension/datasets/plan_loader.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <utility>

#include "base/quiet_thread.h"
#include "gpu/host/device_fault.h"
#include "python/extension/datasets/python_function.h"
#include "python/extension/datasets/signal_poll.h"
#include "python/extension/held_batch.h"
#include "python/extension/parts.h"
#include "python/extension/raise.h"
#include "python/extension/text.h"
#include "python/extension/waits.h"
#include "python/extension/without_gil.h"

namespace millrace::python {
namespace {

namespace nb = nanobind;
using training::DataError;
using training::LoaderStats;

[[noreturn]] void raise_error(const DataError& error) {
  raise("data_error", error.error.message, name_of(error.error.fault), error.stream, error.name,
        error.epoch, error.step);
  throw nb::python_error();
}

nb::object next_loaded(nb::handle_t<PlanLoader> self, std::optional<double> seconds) {
  try {
    return next_batch<PlanLoader>(self, seconds);
  } catch (const std::length_error& error) {  // all buffers are kept
    throw std::runtime_error(error.what());
  }
}

void translate_data_error(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const DeviceFailure& error) {
    raise("error_of", error.what(), "device");
  } catch (const training::LengthFailure& error) {
    raise("data_error", error.what(), name_of(training::DataFault::function), error.stream,
          error.name, error.epoch, 0);
  }
}

nb::tuple position(PlanLoader& loader) {
  const training::PlanPosition at = loader.position();
  return nb::make_tuple(at.epoch, at.step);
}

std::uint64_t steps(PlanLoader& python, std::uint64_t epoch) {
  training::Loader& loader = python.loader();
  const WithoutGil waits;
  return loader.steps_of(epoch, signal_poll());
}

// A step after the last one is the end of the epoch. With a stride, there are several.
void seek(PlanLoader& python, std::uint64_t epoch, std::uint64_t step, bool resets) {
  const std::uint64_t count = step > 0 ? steps(python, epoch) : 0;
  if (step > 0 && step >= count + python.stride())
    refuse("step " + std::to_string(step) + ": epoch " + std::to_string(epoch) + " has " +
           std::to_string(count) + " steps");
  training::Loader& loader = python.loader();
  const WithoutGil waits;
  loader.seek({epoch, step}, resets);
}

nb::dict stats(PlanLoader& loader) {
  const LoaderStats counts = loader.stats();
  nb::dict stats;
  stats["batches"] = counts.batches;
  stats["frames"] = counts.frames;
  stats["padding"] = counts.padding;
  stats["bodies"] = counts.bodies;
  stats["waited"] = seconds_of(counts.waited);
  stats["first"] = counts.first ? nb::cast(seconds_of(*counts.first)) : nb::none();
  stats["kept"] = counts.kept;
  return stats;
}

nb::tuple totals(PlanLoader& python) {
  steps(python, python.position().epoch);  // distributes the epoch without the GIL
  const training::PlanTotals totals = python.loader().epoch_plan()->totals();
  return nb::make_tuple(totals.rows, totals.padding_rows, totals.frames);
}

}  // namespace

PlanLoader::PlanLoader(const DatasetPlan& made, std::uint64_t stride, std::uint64_t first_step,
                       const PlanLoader* former)
    : catalog_(made.catalog),
      frames_(made.catalog->frame_type()),
      stride_(stride),
      process_(::getpid()) {
  auto settings = training::loader_settings(made.keys, frames_, made.options.chunk);
  if (!settings) refuse(settings.error().message);
  settings->stride = stride;
  settings->first_step = first_step;
  frames_.element = settings->dtype;
  if (made.function)
    settings->most_threads = 0;  // added threads would call it again for open streams
  fills_itself_ = settings->threads == 0;
  loader_ = std::make_unique<training::Loader>(made.catalog, made.plan, *settings, made.function);
  // In a forked process, the locks of the former one may be held.
  if (former && !former->is_forked()) loader_->follow(*former->loader_);
}

PlanLoader::~PlanLoader() {
  if (is_forked()) {  // its threads do not exist here, and its locks may be held by them
    static_cast<void>(loader_.release());
    return;
  }
  const WithoutGil waits;  // for threads that may need the GIL
  if (stop_soon()) {
    loader_.reset();
    return;
  }
  // No thread waits for this one, which waits for the others.
  quiet_thread("millrace-left", [left = std::move(loader_)]() mutable { left.reset(); }).detach();
}

std::optional<WorkerBatch> PlanLoader::next(std::optional<double> seconds) {
  loader();
  if (!fills_itself_)  // without a release of the GIL, if a batch is ready
    if (auto batch = take(Time::min()); batch || loader_->at_end()) return batch;
  for (const Time deadline = deadline_in(seconds);;) {
    auto taken = take(std::min(deadline, Clock::now() + signal_interval));
    if (taken || loader_->at_end() || Clock::now() >= deadline) return taken;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

std::optional<WorkerBatch> PlanLoader::take(Time until) {
  auto taken = [&] {
    std::optional<WithoutGil> waits;
    if (until != Time::min()) waits.emplace();
    return loader_->next_until(until);
  }();
  if (!taken) raise_error(taken.error());
  return std::move(*taken);
}

std::optional<StreamText> PlanLoader::text_of(std::uint64_t stream) const {
  return StreamText{catalog_->name(stream), catalog_->meta(stream)};
}

training::Loader& PlanLoader::loader() {
  if (is_forked())
    throw std::runtime_error("the batches belong to the process that this one was forked from");
  if (left_behind_) throw std::runtime_error("the threads of this loader were stopped");
  return *loader_;
}

void PlanLoader::stop() {
  if (is_forked()) return;
  const WithoutGil waits;  // for threads that may need the GIL
  left_behind_ = !stop_soon();
}

bool PlanLoader::stop_soon() { return loader_->stop_until(Clock::now() + signal_interval); }

bool PlanLoader::is_forked() const { return ::getpid() != process_; }

void PlanLoader::drop(WorkerBatch& batch) noexcept {
  if (!is_forked()) loader_->give_back(batch);
}

void add_plan_loader(nb::module_& module) {
  nb::register_exception_translator(translate_data_error);
  nb::class_<PlanLoader>(module, "Loader")
      .def(nb::init<const DatasetPlan&, std::uint64_t, std::uint64_t, const PlanLoader*>(),
           nb::arg("plan"), nb::arg("stride"), nb::arg("first_step"), nb::arg("former").none())
      .def("next", &next_loaded, nb::arg("seconds").none())
      .def_prop_ro("at_end", [](PlanLoader& loader) { return loader.loader().at_end(); })
      .def_prop_ro("position", &position)
      .def("seek", &seek)
      .def("stop", &PlanLoader::stop)
      .def_prop_ro("left_behind", &PlanLoader::left_behind)
      .def("steps", &steps)
      .def("totals", &totals)
      .def_prop_ro("stats", &stats);
}

}  // namespace millrace::python
