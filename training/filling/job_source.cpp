// SPDX-License-Identifier: Apache-2.0
#include "training/filling/job_source.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "workers/feed/row_entry.h"

namespace millrace::training {

using Kind = FillingJob::Kind;

namespace {

// Batches are planned ahead until they open this number of streams for each thread that fills, or a
// stream for each row of a batch: then all slots of the next epoch can be opened ahead.
constexpr std::size_t openings_of_part = 16, most_openings = 256;
constexpr std::size_t most_planned_rows = 16384;  // which cost about 100 bytes each

}  // namespace

JobSource::JobSource(const Catalog& catalog, const Plan& plan, BatchBuffers& buffers,
                     const FillerSettings& settings, std::size_t parts,
                     std::function<void(std::uint64_t)> ask)
    : catalog_(catalog),
      plan_(plan),
      buffers_(buffers),
      settings_(settings),
      slots_(plan.slots(settings.rank)),
      parts_(parts),
      ask_(std::move(ask)) {}

void JobSource::start(PlanPosition position, bool resets) {
  position_ = position;
  resets_ = resets;
  ask_(position.epoch);
}

void JobSource::stop() {
  idle_.clear();
  for (const auto& job : jobs_) {
    if (job->written) buffers_.dropped(*job->buffer);
    if (job->buffer) free_.push_back(*job->buffer);
    job->buffer.reset();
    job->written = false;
    job->of_epoch.reset();
    idle_.push_back(job.get());
  }
  cursor_.reset();
  epoch_.reset();
  epoch_error_ = nullptr;
  planned_.clear();
  rows_ = openings_ = 0;
  refused_.clear();
  begun_ = 0;
  untaken_ = 0;
  end_untaken_ = starved_ = false;
}

void JobSource::set_parts(std::size_t parts) {
  parts_ = parts;
  idle_.clear();
  jobs_.clear();
}

void JobSource::give(std::uint32_t buffer, worker_protocol::HandedBatch spent) {
  free_.push_back(buffer);
  if (spent.framed.capacity() > 0) spent_.push_back(std::move(spent));
}

void JobSource::set_epoch(std::shared_ptr<const EpochPlan> epoch, std::exception_ptr error) {
  epoch_ = std::move(epoch);
  epoch_error_ = std::move(error);
  if (epoch_) try {
      cursor_ = epoch_->cursor(settings_.rank, position_.step, settings_.stride);
    } catch (...) {
      epoch_error_ = std::current_exception();
    }
}

void JobSource::take_back(FillingJob& job) {
  if (job.kind == Kind::batch) --untaken_;
  if (job.kind == Kind::epoch_end) end_untaken_ = false;
  job.of_epoch.reset();
  idle_.push_back(&job);
}

FillingJob* JobSource::next() {
  if (planned_.empty() && !plan()) return nullptr;
  FillingJob& planned = *planned_.front();
  if (planned.kind == Kind::epoch_end) {
    if (end_untaken_) return nullptr;
    end_untaken_ = true;
    return begin_planned();
  }
  if (free_.empty() && untaken_ == 0 && !std::exchange(starved_, true)) {
    FillingJob& job = new_job();
    job.kind = Kind::no_buffer;
    return begin(job);
  }
  if (free_.empty() || (settings_.ahead > 0 && untaken_ >= settings_.ahead)) return nullptr;
  set_shape(planned);
  if (settings_.skip_failed && slots_ > 0) refuse_marks(planned);
  if (has_too_many_marks(planned)) return begin_planned();
  lay_out(planned);
  starved_ = false;
  ++untaken_;
  return begin_planned();
}

FillingJob* JobSource::plan_ahead() try {
  const std::size_t openings =
      std::max<std::size_t>(openings_of_part * parts_, plan_.most_rows(settings_.rank));
  while (cursor_ && !epoch_error_ && planned_.size() < most_planned && rows_ < most_planned_rows &&
         openings_ < std::min(openings, most_openings)) {
    plan();
    if (planned_.back()->kind == Kind::batch) return planned_.back();
  }
  return nullptr;
} catch (...) {
  epoch_error_ = std::current_exception();
  return nullptr;
}

FillingJob* JobSource::begin_planned() {
  FillingJob& job = *planned_.front();
  planned_.pop_front();
  if (job.of_epoch) {
    rows_ -= job.planned.framed.size();
    openings_ -= job.openings;
  }
  return begin(job);
}

FillingJob* JobSource::begin(FillingJob& job) {
  job.number = begun_++;
  return &job;
}

// False: the epoch is awaited.
bool JobSource::plan() {
  if (epoch_error_) std::rethrow_exception(epoch_error_);
  if (!cursor_) return false;
  FillingJob& job = new_job();
  job.kind = cursor_->next(job.planned) ? Kind::batch : Kind::epoch_end;
  planned_.push_back(&job);
  if (job.kind == Kind::batch) {
    if (std::exchange(resets_, false) && slots_ > 0) add_resets(job.planned);
    job.of_epoch = epoch_;
    job.openings =
        static_cast<std::size_t>(std::ranges::count(job.planned.framed, true, &PlannedRow::opens));
    rows_ += job.planned.framed.size();
    openings_ += job.openings;
    return true;
  }
  job.epoch = position_.epoch;
  cursor_.reset();
  epoch_.reset();
  position_ = {position_.epoch + 1, settings_.first_step};
  ask_(position_.epoch);
  return true;
}

// The first step has a row of each slot that has not ended.
void JobSource::add_resets(PlannedBatch& batch) {
  for (PlannedRow& row : batch.framed) {
    if (row.row.is(flag::reset)) continue;
    row.row.flags |= flag::reset;
    row.row.reason = ResetReason::worker_lost;
  }
}

FillingJob& JobSource::new_job() {
  if (idle_.empty()) {
    jobs_.push_back(std::make_unique<FillingJob>(settings_.format, slots_, parts_));
    idle_.push_back(jobs_.back().get());
  }
  FillingJob& job = *idle_.back();
  idle_.pop_back();
  for (auto& failure : job.failures) failure.reset();
  for (auto& part : job.left_out) part = {};
  job.refused.clear();
  job.thrown = nullptr;
  return job;
}

void JobSource::set_shape(FillingJob& job) const {
  const PlannedBatch& batch = job.planned;
  if (!catalog_.companions().empty())
    job.companions = layout_of(catalog_.companions(), batch.rows, batch.body);
  job.shape = {.rows = batch.rows,
               .marks = static_cast<std::uint32_t>(batch.marks.size()),
               .width = batch.width,
               .values = settings_.format.values,
               .element = settings_.format.dtype,
               .companions = job.companions.bytes};
}

// If so, the job has failed at the row with the most of them.
bool JobSource::has_too_many_marks(FillingJob& job) const {
  const PlannedBatch& batch = job.planned;
  const std::size_t bytes = layout_of(job.shape).bytes;
  if (bytes <= buffers_.most_bytes() || batch.marks.empty()) return false;
  const auto of = [](const PlannedRow& row) { return std::pair(row.stream, row.slot); };
  const auto marks_of = [&](const PlannedRow& row) {
    return std::ranges::count(batch.marks, of(row), of);
  };
  const auto row = std::ranges::max_element(batch.framed, {}, marks_of);
  job.kind = Kind::failed;
  job.failures.front() = {
      .row = static_cast<std::size_t>(row - batch.framed.begin()),
      .error = {DataFault::format, "after a row with frames it has " +
                                       std::to_string(marks_of(*row)) +
                                       " marker rows; their batch of " + std::to_string(bytes) +
                                       " bytes is longer than a slab"}};
  return true;
}

// A stream is refused as a whole, and without regard to the others of a batch: so it is the same
// for each reader, wherever it begins.
void JobSource::refuse_marks(FillingJob& job) {
  const std::size_t most = buffers_.most_bytes();
  if (most == std::numeric_limits<std::size_t>::max()) return;
  PlannedBatch& batch = job.planned;
  for (std::size_t at = 0; at < batch.framed.size(); ++at) {
    const PlannedRow& row = batch.framed[at];
    if (!row.opens || !catalog_.has_events(row.stream)) continue;
    refused_.erase(row.slot);
    const std::uint64_t marks = job.of_epoch->most_marks(row.stream);
    SlabShape shape = job.shape;
    shape.marks = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(marks * batch.rows, std::numeric_limits<std::int32_t>::max()));
    shape.width = plan_.most_columns();
    if (!catalog_.companions().empty())
      shape.companions = layout_of(catalog_.companions(), batch.rows, plan_.most_body()).bytes;
    if (layout_of(shape).bytes <= most) continue;
    refused_[row.slot] = row.stream;
    job.refused.push_back(
        {.row = at,
         .error = {DataFault::format, "after a row with frames it has " + std::to_string(marks) +
                                          " marker rows; with this number for each of its " +
                                          std::to_string(batch.rows) +
                                          " rows a batch is longer than a slab"}});
  }
  std::erase_if(batch.marks, [&](const PlannedRow& mark) {
    const auto found = refused_.find(mark.slot);
    return found != refused_.end() && found->second == mark.stream;
  });
  job.shape.marks = static_cast<std::uint32_t>(batch.marks.size());
}

void JobSource::lay_out(FillingJob& job) {
  const PlannedBatch& batch = job.planned;
  const std::uint32_t marks = job.shape.marks;
  const MutableBytes memory = buffers_.memory(free_.back(), layout_of(job.shape).bytes);
  job.buffer = free_.back();
  free_.pop_back();
  job.writer.begin(memory, batch.rows, marks, batch.width, job.companions.bytes);

  worker_protocol::HandedBatch& message = job.message;
  if (!spent_.empty()) {
    message = std::move(spent_.back());
    spent_.pop_back();
  }
  message.rows = batch.rows;
  message.width = batch.width;
  message.epoch = batch.epoch;
  message.step = batch.step;
  message.steps = job.of_epoch->steps();
  message.body = batch.body;
  message.framed.resize(batch.framed.size());
  message.marks.clear();
  for (std::uint32_t at = 0; at < marks; ++at) {
    const PlannedRow& mark = batch.marks[at];
    job.writer.put_mark(at, control_of(mark.slot, mark.row));
    message.marks.push_back(entry_of(StreamId(mark.stream), mark.slot, mark.row));
  }
  job.list_opened();
}

}  // namespace millrace::training
