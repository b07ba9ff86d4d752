// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "client/client_event.h"
#include "client/lines/event_lines.h"
#include "replay/replay.h"
#include "replay/rows/replayed_rows.h"
#include "schemas/worker_messages.h"

namespace millrace {
namespace {

using recording::StreamParts;

// How often the lanes are asked for room, while a stream could begin.
constexpr auto room_period = std::chrono::milliseconds(20);
// Twice the rows that a stream can have at a worker with the most credits; each row returns twice.
// Messages of workers are limited by their room.
constexpr std::size_t returns_per_stream =
    std::size_t{4} * worker_protocol::max_credits + most_messages;

// A stream that is being replayed.
struct OpenWorkerStream {
  OpenWorkerStream(recording::Recordings& recordings, const StreamParts& stream,
                   std::size_t its_index, const ReplayPipeline& pipeline, const Pace& pace,
                   bool compares)
      : index(its_index),
        items(recordings, stream),
        comparison(compares ? std::optional<AnswerComparison>(std::in_place) : std::nullopt),
        rows(items,
             {.frames = pipeline.options.frames,
              .rule = pipeline.options.chunk,
              .other_rule = pipeline.other_rule,
              .name = stream.front().meta.name},
             pace, comparison ? &*comparison : nullptr),
        lines(stream.front().meta.number, stream.front().meta.name) {}

  const std::size_t index;
  recording::JoinedReader items;
  std::optional<AnswerComparison> comparison;
  ReplayedRows rows;
  EventLines lines;
  std::uint64_t messages = 0;  // messages of workers
  FreedRoom freed_room;
  Time due = Time::max();  // its key in the set of due streams
  bool changed = false;    // it is in the list of changed streams
};

class ReplayToWorkers final : public Replay {
 public:
  ReplayToWorkers(recording::Recordings& recordings, std::span<const StreamParts> streams,
                  const ReplayPipeline& pipeline, const WorkersAddress& address,
                  const ScheduleRule& rule, ReplayOutput& output)
      : Replay(recordings, streams, rule, output),
        pipeline_(pipeline),
        returns_(main_, WorkerLanes::most_streams * returns_per_stream,
                 [this](std::vector<Returned>& values) { on_returned(values); }),
        lanes_(pipeline_, address, [this](const WorkerEvent& event) { on_worker(event); }) {}

 private:
  // On the home thread: the views of the event end with the call.
  void on_worker(const WorkerEvent& event) {
    std::string text(event.what);
    if (!event.worker.empty()) text.append(": ").append(event.worker);
    if (!event.why.empty()) text.append(": ").append(event.why);
    const bool row = !event.stream.empty();  // its answer has the error already
    net::post(main_, [this, text = std::move(text), row] {
      if (!row) output_.notice(text);
      pump(Clock::now());
    });
  }

  void on_returned(std::vector<Returned>& values) {
    for (Returned& one : values) {
      const auto found = open_.find(one.stream);
      if (found == open_.end()) continue;
      OpenWorkerStream& stream = *found->second;
      if (const auto* batched = std::get_if<RowBatched>(&one.what)) {
        stream.rows.batched(batched->seq);
        mark(one.stream, stream);
      } else if (const auto* done = std::get_if<RowDone>(&one.what)) {
        on_done(one.stream, stream, *done);
      } else if (auto* message = std::get_if<WorkerMessage>(&one.what)) {
        on_message(one.stream, stream, *message);
      } else {
        on_dropped(one.stream, stream, std::get<StreamDropped>(one.what));
      }
    }
    pump(Clock::now());
  }

  void on_done(StreamId id, OpenWorkerStream& stream, const RowDone& done) {
    auto row = stream.rows.done(done.seq);
    if (!row) return;
    row->flags |= done.flags;
    ++output_.totals().rows;
    if (stream.comparison) stream.comparison->replayed(*row, done.answer);
    if (done.answer.kind != Answer::Kind::none && !output_.compares())
      output_.print(stream.lines.line(
          client_event::Result{.seq = row->seq,
                               .begin = row->begin,
                               .end = row->end(),
                               .begin_s = static_cast<double>(row->begin) / rate(),
                               .end_s = static_cast<double>(row->end()) / rate(),
                               .flags = row->flags,
                               .answer = done.answer}));
    row->is(flag::end) ? finish(id, stream) : mark(id, stream);
  }

  void on_message(StreamId id, OpenWorkerStream& stream, const WorkerMessage& message) {
    if (const std::uint32_t freed = stream.freed_room.add(room_of(message.message)))
      lanes_.hub().free_room(id, freed);
    if (output_.compares()) return;
    output_.print(
        stream.lines.line(client_event::Message{stream.messages++, message.seq, message.message}));
  }

  // An aborted stream of which no worker had a row is dropped too: without an error.
  void on_dropped(StreamId id, OpenWorkerStream& stream, const StreamDropped& dropped) {
    if (dropped.code)
      output_.failed(number(id), "failed at position " + std::to_string(stream.rows.position()) +
                                     ": " + std::string(name_of(*dropped.code)));
    if (stream.comparison) stream.comparison->cut();
    finish(id, stream);
  }

  void finish(StreamId id, OpenWorkerStream& stream) {
    stream.rows.read_rest();
    AnswerComparison* const comparison = stream.comparison ? &*stream.comparison : nullptr;
    if (comparison) comparison->replayed_all();
    if (!stream.rows.problem().empty()) output_.failed(number(id), stream.rows.problem());
    if (stream.rows.differs_from_live())
      output_.failed(number(id), "its rows are not those of the live stream (the digest differs)");
    output_.totals().frames += stream.rows.frames();
    output_.totals().bytes += stream.rows.frames() * pipeline_.options.frames.bytes();
    output_.over(number(id), streams_[stream.index].front().meta.name, stream.items.missing(),
                 comparison);
    due_.erase({stream.due, id});
    schedule_.over(stream.index);
    open_.erase(id);
  }

  void pump(Time now) override {
    if (stopped_) return;
    while (!due_.empty() && due_.begin()->first <= now) mark(due_.begin()->second);
    begin_streams(now);
    changing_.swap(changed_);
    for (const StreamId id : changing_)
      if (const auto found = open_.find(id); found != open_.end()) cut(id, *found->second, now);
    changing_.clear();
    if (!rows_.empty()) lanes_.hub().add(rows_);
    rows_.clear();
    if (!output_.flush() || schedule_.all_over()) return end();
    wait(next_due(now), now);
  }

  void begin_streams(Time now) {
    if (lanes_.workers() == 0) {
      if (!std::exchange(waits_, true)) output_.notice("waiting for a worker");
      return;
    }
    waits_ = false;
    while (const auto index = schedule_.next(now)) {
      if (!lanes_.hub().stream_budget().try_take(1)) return;
      const StreamParts& stream = streams_[*index];
      schedule_.begin(*index);
      const StreamId id{stream.front().meta.number};
      auto& added = *open_
                         .emplace(id, std::make_unique<OpenWorkerStream>(
                                          recordings_, stream, *index, pipeline_,
                                          pace_of(stream, now), output_.compares()))
                         .first->second;
      lanes_.hub().open({.id = id,
                         .name = stream.front().meta.name,
                         .options = stream.front().meta.options,
                         .returns = &returns_});
      mark(id, added);
    }
  }

  void cut(StreamId id, OpenWorkerStream& stream, Time now) {
    stream.changed = false;
    while (auto row = stream.rows.next(now)) rows_.push_back(Hub::AddedRow{id, std::move(*row)});
    due_.erase({stream.due, id});
    stream.due = stream.rows.due();
    if (stream.due != Time::max()) due_.emplace(stream.due, id);
  }

  void mark(StreamId id) {
    due_.erase(due_.begin());
    OpenWorkerStream& stream = *open_.at(id);
    stream.due = Time::max();
    mark(id, stream);
  }
  void mark(StreamId id, OpenWorkerStream& stream) {
    if (!std::exchange(stream.changed, true)) changed_.push_back(id);
  }

  Time next_due(Time now) const {
    const Time next = due_.empty() ? Time::max() : due_.begin()->first;
    if (schedule_.all_begun()) return next;
    // A worker that attaches or leaves changes the room without a message for this thread.
    return std::min(next, schedule_.due() > now ? schedule_.due() : now + room_period);
  }

  double rate() const { return pipeline_.options.frames.rate; }

  const ReplayPipeline pipeline_;
  std::unordered_map<StreamId, std::unique_ptr<OpenWorkerStream>> open_;
  std::set<std::pair<Time, StreamId>> due_;   // streams that wait for their next event
  std::vector<StreamId> changed_, changing_;  // streams that may have a row
  std::vector<Hub::Arrival> rows_;            // for the hub
  bool waits_ = false;                        // for a worker
  ReturnBox returns_;
  WorkerLanes lanes_;  // ends first: its rows refer to the streams
};

}  // namespace

std::unique_ptr<Replay> replay_to_workers(recording::Recordings& recordings,
                                          std::span<const StreamParts> streams,
                                          const ReplayPipeline& pipeline,
                                          const WorkersAddress& address, const ScheduleRule& rule,
                                          ReplayOutput& output) {
  return std::make_unique<ReplayToWorkers>(recordings, streams, pipeline, address, rule, output);
}

}  // namespace millrace
