// SPDX-License-Identifier: Apache-2.0
#include "streams/stream.h"

#include <algorithm>
#include <cassert>
#include <new>
#include <span>
#include <utility>

namespace millrace {
namespace {

using Kind = Event::Kind;

// An event that the client asked for.
bool is_command(const Event& event) {
  return event.cause == Cause::client && event.kind != Kind::open && event.kind != Kind::frames;
}

StreamClosing closing_for(ErrorCode code) {
  if (code == ErrorCode::idle) return StreamClosing::idle;
  if (code == ErrorCode::no_worker) return StreamClosing::no_worker;
  return StreamClosing::error;
}

}  // namespace

Stream::Stream(StreamSettings settings, const StreamLinks& links, ClientOutput& client,
               Share connection, std::unique_ptr<StreamTap> tap, const ResumeSettings* resume,
               Share tenant)
    : settings_(std::move(settings)),
      links_(links),
      connection_(std::move(connection)),
      tenant_(std::move(tenant)),
      client_(&client),
      cutter_(settings_, links_, resume ? resume->open_event() : Event()),
      intake_(settings_, links_, client, cutter_.frames(), resume),
      tap_(std::move(tap)),
      points_(resume ? std::make_unique<ResumePoints>(
                           resume->start, repeats_bodies(settings_) ? resume->longest_segment : 0)
                     : nullptr),
      unwritten_(links.stats),
      waits_(settings_) {
  assert(settings_.frames_limit >= settings_.chunk.width());
  has_credit_ = credit() > 0;
  if (tap_) tap_->event(resume ? resume->open_event() : Event(), settings_.opened, {});
  links_.stats.opened.add();
  links_.stats.open.add(1);
}

void Stream::frames(Bytes message, Time now) {
  if (takes_input()) settle_or_fail(intake_.add_frames(message, now), now);
}

void Stream::reject(ErrorCode code, std::string_view message, std::uint64_t client_frames,
                    Time now) {
  if (takes_input()) settle_or_fail(intake_.reject(code, message, client_frames, now), now);
}

void Stream::goaway() {
  if (client_ && !std::exchange(has_goaway_, true)) client_->goaway();
}

void Stream::drain(Time now) {
  if (std::exchange(draining_, true)) return;
  goaway();
  if (input_ == Input::open) closing_ = StreamClosing::drain;
  end_input(Input::over, Cause::drain, now);
}

void Stream::disconnected(ConnectionEnd how, Time now) {
  const bool clean = how == ConnectionEnd::clean;
  if (!clean && client_listens_) links_.host.client_lost(settings_.name, now);
  stop_output(clean ? StreamClosing::end : StreamClosing::client_gone);
  free_room(unwritten_.drop(loss_));
  clean ? end_input(Input::over, Cause::client, now) : abort(now);
}

void Stream::release(Time now) {
  disconnected(ConnectionEnd::lost, now);  // no effect if disconnected() was called
  client_ = nullptr;
  if (!finished_) links_.host.abandoned(settings_.id);
  links_.host.released(*this);
}

void Stream::fail(ErrorCode code, std::string_view message, Time now) {
  if (client_listens_) send_error(code, message);
  if (code == ErrorCode::slow_reader) loss_ = ResultLoss::slow_reader;
  stop_output(closing_for(code));
  abort(now);
}

void Stream::evict(Time now) {
  if (client_) client_->drop_queued();
  if (input_ == Input::open) drop_waiting();  // otherwise the end is in it
  fail(ErrorCode::no_room, "the service is short of memory; this stream held the most", now);
}

std::size_t Stream::reclaimable() const {
  const std::uint64_t frames = input_ == Input::open ? held_bytes() : 0;
  return static_cast<std::size_t>(frames) + (client_ ? client_->reclaimable() : 0);
}

void Stream::dropped(std::optional<ErrorCode> code, Time now) {
  if (finished_) return;
  if (code) {
    const bool waited = *code == ErrorCode::no_worker;
    if (client_listens_)
      send_error(*code,
                 waited ? "no worker had room for the stream within the worker_wait of its pipeline"
                        : "two of its rows failed because workers were lost");
    stop_output(closing_for(*code));
  }
  client_listens_ = false;
  finish(now);
}

bool Stream::takes_input() {
  if (input_ == Input::ended && client_listens_)
    client_->rejected(ErrorCode::unknown_stream, "the stream has ended", 0);
  return input_ == Input::open;
}

void Stream::settle_or_fail(bool in_range, Time now) {
  in_range ? settle(now) : fail(ErrorCode::values, "positions must be at most 2^53", now);
}

// The end is queued after the waiting events. Only the first end counts.
void Stream::end_input(Input how, Cause cause, Time now) {
  if (input_ == Input::open) intake_.end(cause, now);
  input_ = how;
  settle(now);
}

// The lanes drop an aborted stream with all its rows if no worker has had one. So they must receive
// the abort at once, not after a worker has received the rows before it.
void Stream::abort(Time now) {
  if (input_ == Input::open) {
    cuts_all_ = !cutter_.rows().begun();
    if (cuts_all_) drop_waiting();
    intake_.abort(now);
  }
  input_ = Input::over;
  settle(now);
}

void Stream::stop_output(StreamClosing why) {
  if (client_listens_) closing_ = why;
  client_listens_ = false;
}

void Stream::drop_waiting() {
  intake_.clear();
  if (posts_) posts_->drop_unfed();
}

void Stream::send_error(ErrorCode code, std::string_view message) {
  links_.host.failed(settings_.name, code, message);
  client_->error(code, message);
}

void Stream::settle(Time now) {
  if (finished_) return;
  measure_pause(now);
  intake_.pass(now);
  if (all_done_ && (!client_listens_ || unwritten_.empty())) return finish(now);
  if (settings_.shed_after) intake_.shed(now);
  cut_rows(now);
  cutter_.release_frames();
  report([&] { report_settled(); }, now);
  update_pause();
}

void Stream::cut_rows(Time now) {
  while (hands_over()) {
    const auto waited =
        intake_.empty() ? std::nullopt : std::optional(waits_.longest(cutter_.rows(), now));
    if (auto row = cutter_.next(waited, now, tap_.get())) {
      ended_ |= row->row.is(flag::end);
      if (tap_) tap_->row(row->row);
      if (points_) points_->cut(row->row.seq, cutter_.resume_position(), row->row.is(flag::last));
      row->notify_batched = needs_batched();
      if (posts_) row->posts = posts_->carry(row->row.seq);
      const Row cut = row->row;
      links_.host.add(settings_.id, std::move(*row));
      if (cut.is(flag::last)) report([&] { report_segment(cut); }, now);
    } else if (intake_.empty()) {
      return;
    } else {
      const auto [event, arrived] = intake_.take(cutter_.frames_until_next(tap_.get()));
      const bool posted = event.has_text();
      const std::string_view text = posted ? posts_->next() : std::string_view();
      cutter_.add(event, arrived, tap_.get(), std::as_bytes(std::span(text)));
      if (points_ && is_command(event)) points_->fed(cutter_.is_closing());
      if (posted) posts_->feed(cutter_.position(), event.kind == Kind::set);
      if (client_follows() && cutter_.speech_began()) report([&] { report_speech(); }, now);
    }
    if (cutter_.lost_detector())
      return fail(ErrorCode::internal, "no memory for a voice detector", now);
  }
}

template <class Call>
void Stream::report(Call call, Time now) {
  if (!client_follows()) return;
  try {
    call();
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::internal, "no memory for a message", now);
  }
}

void Stream::report_segment(const Row& last) {
  client_->segment_ended({.seq = last.seq,
                          .position = last.end() + last.right,
                          .rate = settings_.type.rate,
                          .mark = last.mark,
                          .by_endpoint = cutter_.ended_by_endpoint()});
}

// The detector decides at the end of each 10 ms.
void Stream::report_speech() {
  const double seconds = static_cast<double>(cutter_.position()) / settings_.type.rate;
  client_->speech_began(std::max(0.0, seconds - 0.010));
}

// An event that waits, and a row that is not cut yet, may be complete without further frames.
void Stream::report_settled() {
  const auto first = cutter_.rows().completed_by();
  if (!first && waits_for_client()) return client_->settled(cutter_.position());
  const std::uint64_t before = first.value_or(cutter_.position());
  if (before > 0) client_->settled(before - 1);
}

bool Stream::hands_over() {
  if (cuts_all_) return true;
  held_up_ = client_listens_ && client_->full();
  return !held_up_ && cutter_.rows().ready() < max_ready_rows;
}

// True if the stream has to know when the row just cut is in a batch. The notice costs this thread
// a wake-up; without it, the row's result brings the same information later.
bool Stream::needs_batched() const {
  const OutstandingRows& rows = cutter_.rows();
  return !rows.begun() || rows.ready() >= max_ready_rows / 2 || links_.blocks.scarce() ||
         waits_.needs_notice();
}

void Stream::batched(std::uint64_t seq, Time now) {
  cutter_.batched(seq);
  settle(now);
}

void Stream::done(RowDone done, Time now) {
  if (finished_) return;
  Row row = cutter_.done(done.seq);
  if (posts_) posts_->done(done.seq);
  row.flags |= done.flags;
  if (done.reason == ResetReason::worker_lost) links_.stats.resets[done.reason].add();
  links_.stats.done(done.at);
  waits_.done(done.at);
  if (done.answer.endpoint) cutter_.on_worker_endpoint(done.seq);
  // The client still needs the flush of this row until it has received `flushed`, and its end until
  // it has received `closed`.
  if (points_ && !row.mark && !row.is(flag::end)) points_->done();
  try {
    deliver(row, done);
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::internal, "no memory for a result", now);
  }
  if (points_ && row.mark) points_->done();
  all_done_ = row.is(flag::end);
  settle(now);
}

void Stream::deliver(const Row& row, const RowDone& done) {
  if (done.answer.kind != Answer::Kind::none) {
    if (tap_) tap_->answered(row.seq, done.in_batch.batch, done.answer);
    links_.stats.answered.add();
    if (!client_listens_) {
      links_.stats.dropped[loss_].add();
    } else {
      unwritten_.add(done.at);
      ResultHead head{.seq = row.seq,
                      .begin = row.begin,
                      .end = row.end(),
                      .rate = settings_.type.rate,
                      .flags = row.flags};
      const Explanation explanation{done.in_batch, done.at};
      if (settings_.explain) head.explanation = &explanation;
      client_->result(head, done.answer);
    }
  }
  if (client_listens_ && row.mark) client_->flushed(*row.mark, row.seq);
}

ResumePoint Stream::resume_point() const {
  const auto& place = points_->place(cutter_.position());
  ResumePoint point{.seq = place.seq, .commands = place.commands, .begin = place.begin};
  intake_.locate(point);
  return point;
}

void Stream::set_detached(bool detached, Time now) {
  detached_ = detached;
  links_.stats.detached.add(detached ? 1 : -1);
  if (detached) links_.host.detached(settings_.name, now);
}

void Stream::message(WorkerMessage message, Time now) {
  const MessageHead head{.number = messages_++, .seq = message.seq};
  const std::uint32_t room = room_of(message.message);
  if (tap_) tap_->message(head.number, head.seq, message.message);
  if (!client_listens_) return free_room(room);
  try {
    unwritten_.add_message(room);
    client_->message(head, message.message);
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::internal, "no memory for a message", now);
  }
}

void Stream::free_room(std::uint32_t bytes) {
  if (const std::uint32_t freed = freed_room_.add(bytes))
    links_.host.free_room(settings_.id, freed);
}

void Stream::written(std::size_t results, Time now) {
  free_room(unwritten_.written(results, now));
  if (held_up_ || all_done_) settle(now);
}

void Stream::finish(Time now) {
  input_ = Input::over;
  finished_ = true;
  paused_ = false;
  const auto from = points_ ? points_->start() : ResumePoints::Place();
  if (client_listens_)
    client_->closed(from.begin + cutter_.frames().end(), from.seq + cutter_.chunks(), draining_);
  client_listens_ = false;
  if (const auto tap = std::move(tap_)) tap->closed(closing_, ended_);
  intake_.clear();
  cutter_.drop_all();
  posts_.reset();
  links_.stats.open.add(-1);
  links_.stats.closed[closing_].add();
  links_.stats.duration.observe(now - settings_.opened);
}

}  // namespace millrace
