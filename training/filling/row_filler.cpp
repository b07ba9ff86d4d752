// SPDX-License-Identifier: Apache-2.0
#include "training/filling/row_filler.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <exception>
#include <utility>

#include "workers/feed/row_entry.h"

namespace millrace::training {

namespace {

// The first and the second part of a window that are brought to the cache while the row before it
// is written. The processor fetches the rest itself.
constexpr std::size_t first_part = 2048, second_part = 4096;  // bytes

void prefetch(Bytes window, std::size_t begin, std::size_t bytes) {
  const std::size_t end = std::min(window.size(), begin + bytes);
  constexpr std::size_t line = 64;
  for (std::size_t at = begin; at < end; at += line) __builtin_prefetch(&window[at]);
}

}  // namespace

RowFiller::RowFiller(const Catalog& catalog, StreamFunction* function, std::uint32_t slots,
                     Part part)
    : catalog_(catalog),
      slots_(slots),
      part_(part),
      streams_(catalog, function, slots, part.parts),
      changes_(function != nullptr) {}

// Neighbouring rows belong to one thread: then threads do not write to the same cache lines.
bool RowFiller::is_mine(const PlannedRow& row) const {
  if (part_.parts == 1) return true;
  if (slots_ == 0) return row.stream % part_.parts == part_.part;
  return row.slot * part_.parts / slots_ == part_.part;
}

void RowFiller::fill(FillingJob& job, const std::atomic<bool>& stop) {
  fill_rows(job, stop);
  streams_.drop_ahead({job.planned.epoch, job.planned.step});
}

bool RowFiller::opens(const PlannedBatch& batch, std::size_t row) const {
  const PlannedRow& planned = batch.framed[row];
  return is_mine(planned) && streams_.opens(planned, batch.epoch) &&
         !has_failed(planned, batch.epoch);
}

// The row meets an exception again when it is filled, and reports it in its order.
void RowFiller::open_ahead(const PlannedBatch& batch, std::size_t row) try {
  streams_.open_ahead(batch.framed[row], {batch.epoch, batch.step});
} catch (...) {  // NOLINT(bugprone-empty-catch)
}

// The frames of a row are found before the row before it is written, so that they come from memory
// meanwhile. The two rows must not be of one stream: its reader returns one window at a time. And
// the second stream must be open: to open it may take long, and a mapped file may be cut meanwhile.
void RowFiller::fill_rows(FillingJob& job, const std::atomic<bool>& stop) {
  const auto& framed = job.planned.framed;
  const std::uint64_t epoch = job.planned.epoch;
  if (part_.failed) forget_old(*part_.failed, epoch);
  for (const FillingJob::Failure& refused : job.refused)
    if (const auto& row = framed[refused.row]; is_mine(row) && !has_failed(row, epoch))
      set_failed(job, refused.row, refused.error);
  std::optional<Found> before;
  for (std::uint32_t at = 0; at < framed.size(); ++at) {
    if (!is_mine(framed[at])) continue;
    if (stop.load(std::memory_order_relaxed)) return;
    if (has_failed(framed[at], epoch)) {
      leave_out(job, at);
      continue;
    }
    if (before && (!streams_.together(framed[before->at], framed[at]) ||
                   !streams_.is_open(framed[at], epoch))) {
      write(job, *before, {});
      before.reset();
      if (job.failures[part_.part]) return;
      if (has_failed(framed[at], epoch)) {
        leave_out(job, at);
        continue;
      }
    }
    const auto found = find(job, at);
    if (before) write(job, *before, found ? found->window : Bytes());
    if (job.failures[part_.part]) return;
    before = found;
  }
  if (before) write(job, *before, {});
  if (job.failures[part_.part]) return;
  for (std::size_t at = 0; at < job.planned.marks.size(); ++at)
    if (const PlannedRow& mark = job.planned.marks[at]; is_mine(mark)) {
      streams_.close_if_ended(mark);
      if (has_failed(mark, epoch)) job.left_out[part_.part].marks.push_back(at);
    }
}

// Without slots, rows from before the bad frame may come after others.
bool RowFiller::has_failed(const PlannedRow& row, std::uint64_t epoch) const {
  if (!part_.failed || part_.failed->empty()) return false;
  const auto found = part_.failed->find({epoch, row.stream, row.copy});
  if (found == part_.failed->end()) return false;
  const FailedStream& failed = found->second;
  if (slots_ > 0) return row.frame >= failed.frame;
  return row.frame == failed.frame || row.frame + row.row.size + row.row.right > failed.good;
}

// The batch in which the stream failed may have been dropped.
void RowFiller::leave_out(FillingJob& job, std::size_t at) {
  const PlannedRow& row = job.planned.framed[at];
  FillingJob::LeftOut& left_out = job.left_out[part_.part];
  left_out.framed.push_back(at);
  const FailedStream& failed = part_.failed->at({job.planned.epoch, row.stream, row.copy});
  if (row.frame == failed.frame)
    left_out.failures.push_back({.row = at, .error = failed.error, .good = failed.good});
}

void RowFiller::set_failed(FillingJob& job, std::size_t at, ReadError error) {
  const PlannedRow& row = job.planned.framed[at];
  const std::uint64_t epoch = job.planned.epoch, good = streams_.good_frames(row, epoch);
  streams_.close(row);
  auto& failed = *part_.failed;
  const auto found =
      failed.try_emplace({epoch, row.stream, row.copy}, FailedStream{.good = good}).first;
  found->second = {row.frame, std::min(good, found->second.good), std::move(error)};
}

std::optional<RowFiller::Found> RowFiller::find(FillingJob& job, std::uint32_t at) {
  Found row{.at = at, .stream = nullptr, .window = {}};
  if (!attempt(job, at, [&] { return read(job, row); })) return std::nullopt;
  prefetch(row.window, 0, first_part);
  return row;
}

// `next` is the window that is written after this one.
void RowFiller::write(FillingJob& job, const Found& row, Bytes next) {
  if (attempt(job, row.at, [&] { return put(job, row, next); }))
    streams_.close_if_ended(job.planned.framed[row.at]);
}

// False: the step failed, which is in job.failures then.
template <class Step>
bool RowFiller::attempt(FillingJob& job, std::uint32_t at, const Step& step) {
  auto& failure = job.failures[part_.part];
  try {
    auto done = step();
    if (done) return true;
    if (part_.failed) {
      set_failed(job, at, std::move(done).error());
      leave_out(job, at);
      return false;
    }
    failure = {.row = at, .error = std::move(done).error()};
  } catch (...) {
    failure = {.row = at, .error = {}, .thrown = std::current_exception()};
  }
  return false;
}

// The rows before may be those of another process or of a former run, or come later.
Result<void, ReadError> RowFiller::check_before(OpenStream& stream, const PlannedRow& row) {
  if (slots_ == 0 && !changes_) stream.set_good(good_[row.stream]);
  return stream.check_until(row.frame - row.row.left);
}

Result<void, ReadError> RowFiller::read(FillingJob& job, Found& row) {
  const PlannedRow& planned = job.planned.framed[row.at];
  const auto stream = streams_.find(planned, job.planned.epoch);
  if (!stream) return stream.error();
  row.stream = *stream;
  if (part_.failed)
    if (auto good = check_before(**stream, planned); !good) return good;
  const auto window = row.stream->frames(planned.frame - planned.row.left, planned.row.window());
  if (!window) return window.error();
  row.window = *window;
  return {};
}

Result<void, ReadError> RowFiller::put(FillingJob& job, const Found& row, Bytes next) {
  const PlannedRow& planned = job.planned.framed[row.at];
  const RowControl control = control_of(planned.slot, planned.row);
  job.writer.put(row.at, control, {row.window, Bytes()});
  // The check needs no memory: the window is in the cache now.
  prefetch(next, first_part, second_part);
  if (auto finite = row.stream->check_finite(row.window, planned.frame - planned.row.left); !finite)
    return finite;
  job.message.framed[row.at] = entry_of(StreamId(planned.stream), planned.slot, planned.row);
  if (auto done = put_companions(job, row); !done || !part_.failed) return done;
  row.stream->set_good(planned.frame + planned.row.size + planned.row.right);
  if (slots_ == 0 && !changes_) good_[planned.stream] = row.stream->good();
  return {};
}

Result<void, ReadError> RowFiller::put_companions(FillingJob& job, const Found& row) {
  const auto formats = catalog_.companions();
  const PlannedRow& planned = job.planned.framed[row.at];
  for (std::size_t i = 0; i < formats.size(); ++i) {
    const std::size_t bytes = job.companions.sizes[i] / job.planned.rows;
    const MutableBytes to =
        job.writer.companions().subspan(job.companions.offsets[i] + row.at * bytes, bytes);
    const auto entries =
        row.stream->entries(i, formats[i].entries_in(planned.frame, planned.row.size));
    if (!entries) return entries.error();
    assert(entries->size() <= bytes);
    if (!entries->empty()) std::memcpy(to.data(), entries->data(), entries->size());
    std::ranges::fill(to.subspan(entries->size()), std::byte{});
  }
  return {};
}

}  // namespace millrace::training
