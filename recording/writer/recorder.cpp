// SPDX-License-Identifier: Apache-2.0
#include "recording/writer/recorder.h"

#include <algorithm>
#include <new>
#include <ranges>
#include <utility>

namespace millrace::recording {
namespace {

constexpr auto check_period = std::chrono::seconds(1);
constexpr auto longest_wait = std::chrono::seconds(60);
constexpr auto longest_report_wait = std::chrono::minutes(10);

DropReason reason_of(std::error_code why) {
  if (why == std::errc::not_enough_memory) return DropReason::memory;
  return is_disk_full(why) ? DropReason::disk_full : DropReason::io_error;
}

}  // namespace

Recorder::Recorder(RecorderSettings settings, PagePool& pages, RecordingStats& stats,
                   RecorderNotices& notices)
    : settings_(std::move(settings)),
      pages_(pages),
      stats_(stats),
      notices_(notices),
      series_(settings_.directory, settings_.lock_wait, settings_.wall, stats, notices),
      streams_(*this) {
  held_.reserve(pages.pages());
  if (const auto begun = series_.begin(); !begun) {
    ++failures_;
    suspend(reason_of(begun.error()), begun.error().message());
  }
}

void Recorder::take(Page& page, Time now) {
  now_ = now;
  if (page.begun) stats_.queue_wait.observe(now - *page.begun);
  streams_.take(page);
  held_.push_back(&page);
}

bool Recorder::has_enough() const {
  return streams_.bytes() >= settings_.commit_bytes || 2 * held_.size() >= pages_.pages();
}

Time Recorder::due() const {
  if (held_.empty()) return checked_ + check_period;
  return has_enough() ? Time::min() : committed_ + settings_.commit;
}

void Recorder::work(Time now) {
  now_ = now;
  if (now >= due()) commit();
}

void Recorder::finish(Time now) {
  now_ = now;
  commit();
  if (!unwritten_ends_.empty()) commit();  // in another file, if the first one failed
  if (series_.is_open()) seal();
  report_dropped();
}

void Recorder::shed(bool sheds) { sheds_ = sheds; }

std::optional<DropReason> Recorder::blocked() const {
  return sheds_ ? std::optional(DropReason::memory) : suspended_;
}

void Recorder::commit() {
  committed_ = now_;
  check_disk();
  if (!blocked()) write_ends();
  for (PendingStream* const stream : streams_.waiting()) add(*stream);
  streams_.clear();
  for (Page* const page : held_) pages_.give_back(*page);
  held_.clear();
  write();
  if (series_.is_open() && series_.writer().size() >= settings_.file_size) seal();
  for (const std::uint64_t stream : gone_) streams_.remove(stream);
  gone_.clear();
  stats_.streams.set(static_cast<std::int64_t>(streams_.size()));
}

void Recorder::add(PendingStream& stream) {
  if (stream.is_empty()) return;
  if (const auto reason = blocked()) return drop(stream, *reason);
  if (!has_room(stream)) return drop(stream, blocked().value_or(DropReason::io_error));
  try {
    // By more than one, so that a commit of many slices does not copy the earlier ones each time.
    if (uncommitted_.size() == uncommitted_.capacity())
      uncommitted_.reserve(std::max<std::size_t>(16, 2 * uncommitted_.size()));
    series_.writer().add(stream.meta, stream.slice_number, stream.wall(), stream.slice(),
                         stream.frames);
  } catch (const std::bad_alloc&) {
    return give_up(stream);
  }
  series_.use(stream.meta.number);
  uncommitted_.push_back({.stream = &stream,
                          .has_events = stream.has_events(),
                          .first_event = stream.first_event,
                          .begin = stream.begin,
                          .lost = std::exchange(stream.lost, {}),
                          .closing = std::exchange(stream.closing, {})});
  ++stream.slice_number;
  stream.begin_next();
}

// No memory: the file may have half of the slice.
void Recorder::give_up(PendingStream& stream) {
  series_.abandon("out of memory");
  lose(DropReason::memory);
  drop(stream, DropReason::memory);
}

// Makes room for a slice: a file, and in it a channel for the stream.
bool Recorder::has_room(const PendingStream& stream) {
  if (!has_file()) return false;
  if (series_.writer().has_channel(stream.meta.number) ||
      series_.writer().channels() < FileWriter::most_channels)
    return true;
  if (write()) seal();
  return !blocked() && has_file();
}

bool Recorder::has_file() {
  if (series_.is_open()) return true;
  const auto begun = series_.begin();
  if (!begun) fail(begun.error());
  return series_.is_open();
}

void Recorder::drop(PendingStream& stream, DropReason reason) {
  if (stream.closing) keep_end(stream);
  if (!stream.has_events() && !stream.has_records()) return;  // the rest is written later
  skipped(reason);
  stats_.dropped[reason].add();
  if (!stream.lost && stream.has_events())
    stream.lost =
        LostEvents{.first_event = stream.first_event, .begin = stream.begin, .reason = reason};
  ++stream.slice_number;
  stream.begin_next();
}

void Recorder::skipped(DropReason reason) {
  ++drops_.slices;
  drops_.because = reason;
}

void Recorder::keep_end(PendingStream& stream) {
  unwritten_ends_.push_back(&stream);
  if (unwritten_ends_.size() <= most_unwritten_ends) return;
  gone_.push_back(unwritten_ends_.front()->meta.number);
  unwritten_ends_.pop_front();
}

void Recorder::write_ends() {
  for (PendingStream* const stream : unwritten_ends_) streams_.wait(*stream);
  unwritten_ends_.clear();
}

// Writes what was added to the file. False if it is lost.
bool Recorder::write() {
  if (uncommitted_.empty()) return true;
  if (const auto written = series_.commit(); !written) {
    lose(reason_of(written.error()));
    fail(written.error());
    return false;
  }
  failures_ = 0;
  stats_.slices.add(uncommitted_.size());
  for (const Uncommitted& slice : uncommitted_)
    if (slice.closing) gone_.push_back(slice.stream->meta.number);
  uncommitted_.clear();
  return true;
}

// The slices were not written. From the last one to the first, so that each stream states the first
// of its events that is lost.
void Recorder::lose(DropReason reason) {
  for (const Uncommitted& slice : uncommitted_ | std::views::reverse) {
    PendingStream& stream = *slice.stream;
    skipped(reason);
    stats_.dropped[reason].add();
    if (slice.lost)
      stream.lost = slice.lost;
    else if (slice.has_events)
      stream.lost =
          LostEvents{.first_event = slice.first_event, .begin = slice.begin, .reason = reason};
    if (!slice.closing) continue;
    stream.closing = slice.closing;
    keep_end(stream);
  }
  uncommitted_.clear();
}

void Recorder::seal() {
  if (const auto sealed = series_.seal(); !sealed) fail(sealed.error());
}

// The next file begins at once, but not if one file after the other fails.
void Recorder::fail(std::error_code why) {
  ++failures_;
  if (is_disk_full(why) || failures_ > 1) suspend(reason_of(why), why.message());
}

void Recorder::suspend(DropReason reason, const std::string& why) {
  if (!suspended_) notices_.suspended(why);
  suspended_ = reason;
  stats_.suspended.set(1);
  const Duration wait = check_period * (1 << std::clamp(failures_ - 1, 0, 6));
  retry_ = now_ + std::min<Duration>(wait, longest_wait);
}

void Recorder::check_disk() {
  if (now_ - checked_ >= check_period) {
    checked_ = now_;
    if (now_ >= drops_.report) report_dropped();
    look_at_disk();
  }
  if (suspended_ && now_ >= retry_) try_to_resume();
}

void Recorder::report_dropped() {
  if (drops_.slices == drops_.reported) {
    drops_ = {};
    return;
  }
  notices_.dropped(drops_.slices, drops_.because);
  drops_.reported = drops_.slices;
  drops_.wait = std::min<Duration>(2 * drops_.wait, longest_report_wait);
  drops_.report = now_ + drops_.wait;
}

void Recorder::look_at_disk() {
  const std::uint64_t free = series_.free_bytes();
  stats_.free_bytes.set(static_cast<std::int64_t>(free));
  if (suspended_) return;
  if (series_.is_open() && series_.is_removed()) {
    series_.abandon("the file was removed");
    lose(DropReason::io_error);
  }
  if (free < settings_.min_free)
    suspend(DropReason::disk_full, "less than [recording] min_free is free");
}

void Recorder::try_to_resume() {
  if (const auto opened = series_.open(); !opened) return fail(opened.error());
  if (series_.free_bytes() < settings_.min_free + settings_.commit_bytes) {
    retry_ = now_ + check_period;
    return;
  }
  if (!series_.is_open()) {
    if (const auto begun = series_.begin(); !begun) return fail(begun.error());
  }
  suspended_.reset();
  stats_.suspended.set(0);
  report_dropped();
  drops_ = {};
  notices_.resumed();
}

}  // namespace millrace::recording
