// SPDX-License-Identifier: Apache-2.0
#include "training/filling/loader.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <utility>
#include <variant>

#include "gpu/host/companion_layout.h"
#include "training/filling/batch_filler.h"
#include "training/filling/epochs.h"
#include "training/filling/loader_buffers.h"
#include "training/filling/thread_growth.h"
#include "workers/library/batch_arrays.h"

namespace millrace::training {

namespace {

using Count = std::atomic<std::uint64_t>;

FillerSettings filler_settings(const LoaderSettings& settings, const RowFormat& format,
                               std::uint32_t prefetch) {
  return {.rank = settings.rank,
          .stride = settings.stride,
          .first_step = settings.first_step,
          .threads = settings.threads,
          .ahead = settings.prefetch > 0 ? settings.prefetch : prefetch,
          .buffers = settings.buffers,
          .format = format,
          .skip_failed = settings.skip_failed};
}

// Only one thread writes it.
void add(Count& count, std::uint64_t more) {
  count.store(count.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

}  // namespace

RowFormat format_of(const Catalog& catalog, const LoaderSettings& settings) {
  const FrameType& frames = catalog.frame_type();
  return {.frames = frames.element,
          .dtype = settings.dtype,
          .values = frames.values,
          .context = settings.context,
          .repeat = settings.repeat};
}

std::uint32_t automatic_prefetch(const Catalog& catalog, const Plan& plan,
                                 const LoaderSettings& settings) {
  constexpr std::size_t bytes = 16 << 20;
  const std::size_t frames = plan.most_padded_frames(settings.rank);
  std::size_t batch = frames * catalog.frame_type().values * size_of(settings.dtype);
  if (!catalog.companions().empty())
    batch += layout_of(catalog.companions(), plan.most_rows(settings.rank), plan.most_body()).bytes;
  const std::size_t fit = std::clamp<std::size_t>(bytes / std::max<std::size_t>(batch, 1), 3, 16);
  const std::size_t most = std::max<std::uint32_t>(settings.buffers, 2) - 1;
  return static_cast<std::uint32_t>(std::min(fit, most));
}

struct Loader::Impl {
  Impl(std::shared_ptr<const Catalog> the_catalog, std::shared_ptr<const Plan> the_plan,
       const LoaderSettings& the_settings, std::shared_ptr<StreamFunction> function)
      : catalog(std::move(the_catalog)),
        settings(the_settings),
        epochs(std::make_shared<Epochs>(std::move(the_plan))),
        buffers(settings.buffers, settings.device, format_of(*catalog, settings)),
        filler(catalog, epochs, buffers,
               filler_settings(settings, buffers.format(),
                               automatic_prefetch(*catalog, epochs->plan(), settings)),
               std::move(function)) {
    for (std::uint32_t buffer = settings.buffers; buffer > 0; --buffer) filler.give(buffer - 1);
  }

  bool stop_until(Time deadline);
  bool set_threads(std::uint32_t count, Time deadline);
  bool grow(Time now, Time deadline);
  std::optional<FillResult> next(Time deadline);
  WorkerBatch take(FilledBatch filled);
  void count(const WorkerBatch& batch, Time asked, Time now);
  void give_back(std::uint32_t buffer, worker_protocol::HandedBatch spent);
  bool all_are_kept() const { return starved && kept == settings.buffers; }

  const std::shared_ptr<const Catalog> catalog;
  const LoaderSettings settings;
  const Time made = Clock::now();
  const std::shared_ptr<Epochs> epochs;
  LoaderBuffers buffers;
  BatchFiller filler;

  std::uint32_t threads = settings.threads;
  ThreadGrowth growth{settings.threads, settings.most_threads};

  PlanPosition position;
  bool resets = false;  // the next batch has to add RESET
  bool at_end = false;
  bool starved = false;  // the filler has no buffer for the next batch
  std::shared_ptr<const EpochPlan> epoch_plan;
  std::uint64_t planned_epoch = 0;  // number of epoch_plan
  FailedStreams failed;             // in the batches that were taken

  Count batches{0}, frames{0}, padding{0}, bodies{0};
  std::atomic<Duration::rep> waited{0}, first{-1};  // first: -1: no batch was taken
  std::atomic<std::uint32_t> kept{0};
};

bool Loader::Impl::stop_until(Time deadline) {
  const bool filled = filler.stop_until(deadline);
  if (!epochs->stop_until(deadline) || !filled) return false;
  starved = false;
  return true;
}

// False: the threads have not ended at the deadline.
bool Loader::Impl::set_threads(std::uint32_t count, Time deadline) {
  if (count == threads) return true;
  if (!stop_until(deadline)) return false;
  filler.set_threads(count);
  threads = count;
  return true;
}

bool Loader::Impl::grow(Time now, Time deadline) {
  return threads == 0 || set_threads(growth.threads(now, Duration(waited)), deadline);
}

std::optional<FillResult> Loader::Impl::next(Time deadline) {
  if (!filler.running()) {
    buffers.open_device();
    filler.start(position, resets);
  }
  for (;;) {
    if (all_are_kept())
      throw std::length_error("all " + std::to_string(settings.buffers) +
                              " buffers are in batches that are kept: keep fewer batches, or set "
                              "`buffers` to a larger number");
    auto result = filler.next_until(deadline);
    if (!result || !std::holds_alternative<NoBuffer>(*result)) return result;
    starved = true;
  }
}

WorkerBatch Loader::Impl::take(FilledBatch filled) {
  const SlabRef slab{
      .index = filled.buffer, .memory = buffers.memory(filled.buffer), .shape = filled.shape};
  const auto arrays =
      arrays_in(slab.memory, slab.shape, catalog->companions(), filled.message.body);
  position.step = filled.message.step + settings.stride;
  add_failed(failed, filled.failed);
  filled.message.slab = filled.buffer;
  WorkerBatch batch(std::move(filled.message), arrays, slab);
  if (const DeviceArrays* device = buffers.arrays(filled.buffer)) batch.set_device(*device);
  resets = starved = false;
  ++kept;
  return batch;
}

void Loader::Impl::count(const WorkerBatch& batch, Time asked, Time now) {
  std::uint64_t windows = 0, body = 0;
  for (const auto& row : batch.framed()) {
    windows += row.left + row.size + row.right;
    body += row.size;
  }
  const std::uint64_t columns = std::uint64_t{batch.rows()} * batch.width();
  add(batches, 1);
  add(frames, columns);
  add(padding, columns - windows);
  add(bodies, body);
  waited += (now - asked).count();
  if (first < 0) first = (now - made).count();
}

void Loader::Impl::give_back(std::uint32_t buffer, worker_protocol::HandedBatch spent) {
  buffers.give_back(buffer);
  --kept;
  filler.give(buffer, std::move(spent));
}

Loader::Loader(std::shared_ptr<const Catalog> catalog, std::shared_ptr<const Plan> plan,
               const LoaderSettings& settings, std::shared_ptr<StreamFunction> function)
    : impl_(std::make_unique<Impl>(std::move(catalog), std::move(plan), settings,
                                   std::move(function))) {}

Loader::~Loader() { stop(); }

Result<std::optional<WorkerBatch>, DataError> Loader::next_until(Time deadline) {
  Impl& impl = *impl_;
  impl.at_end = false;
  const Time asked = Clock::now();
  if (deadline != Time::min() && !impl.grow(asked, deadline)) return std::nullopt;
  auto result = impl.next(deadline);
  const Time now = Clock::now();
  if (!result) {
    impl.waited += (now - asked).count();
    return std::nullopt;
  }
  if (auto* error = std::get_if<DataError>(&*result)) return std::move(*error);
  if (const auto* end = std::get_if<EpochEnd>(&*result)) {
    impl.at_end = true;
    impl.position = {end->epoch + 1, impl.settings.first_step};
    impl.epoch_plan.reset();
    return std::nullopt;
  }
  WorkerBatch batch = impl.take(std::get<FilledBatch>(std::move(*result)));
  batch.set_taken(now);
  impl.count(batch, asked, now);
  return std::optional<WorkerBatch>(std::move(batch));
}

std::uint32_t Loader::threads() const { return impl_->threads; }
void Loader::set_threads(std::uint32_t threads) { (void)impl_->set_threads(threads, Time::max()); }

bool Loader::at_end() const { return impl_->at_end; }
PlanPosition Loader::position() const { return impl_->position; }

void Loader::seek(PlanPosition position, bool resets) {
  stop();
  if (position != impl_->position) {
    impl_->failed.clear();
    impl_->filler.set_failed({});
  }
  impl_->position = position;
  impl_->resets = resets;
  impl_->at_end = false;
}

void Loader::follow(const Loader& former) {
  seek(former.impl_->position);
  impl_->failed = former.impl_->failed;
  impl_->filler.set_failed(impl_->failed);
}

bool Loader::stop_until(Time deadline) { return impl_->stop_until(deadline); }

std::uint64_t Loader::steps(const Poll& poll) { return epoch_plan(poll)->steps(); }

std::uint64_t Loader::steps_of(std::uint64_t epoch, const Poll& poll) {
  return epoch == impl_->position.epoch ? steps(poll) : impl_->epochs->get(epoch, poll)->steps();
}

std::shared_ptr<const EpochPlan> Loader::epoch_plan(const Poll& poll) {
  Impl& impl = *impl_;
  const std::uint64_t epoch = impl.position.epoch;
  if (!impl.epoch_plan || impl.planned_epoch != epoch) {
    impl.epoch_plan = impl.epochs->get(epoch, poll);
    impl.planned_epoch = epoch;
  }
  return impl.epoch_plan;
}

void Loader::use_on(const WorkerBatch& batch, DeviceStream stream) {
  impl_->buffers.use_on(batch.slab().index, stream);
}
int Loader::ordinal() const { return impl_->buffers.ordinal(); }

void Loader::give_back(WorkerBatch& batch) {
  const std::uint32_t buffer = batch.slab().index;
  impl_->give_back(buffer, batch.release());
}

LoaderStats Loader::stats() const {
  const Impl& impl = *impl_;
  LoaderStats stats{.batches = impl.batches,
                    .frames = impl.frames,
                    .padding = impl.padding,
                    .bodies = impl.bodies,
                    .waited = Duration(impl.waited),
                    .filling = impl.filler.filling(),
                    .first = std::nullopt,
                    .kept = impl.kept};
  if (impl.first >= 0) stats.first = Duration(impl.first);
  return stats;
}

}  // namespace millrace::training
