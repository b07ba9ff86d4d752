// SPDX-License-Identifier: Apache-2.0
#include "replay/replay_to_workers.h"

#include <chrono>
#include <deque>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "client/client_event.h"
#include "client/lines/event_lines.h"
#include "replay/rows/replayed_rows.h"
#include "replay/selection.h"
#include "schemas/worker_messages.h"
#include "transport/net/net.h"

namespace millrace {
namespace {

using recording::RecordedStream;

// How often the lanes are asked for room, while a stream could begin.
constexpr auto room_period = std::chrono::milliseconds(20);
// Twice the rows that a stream can have at a worker with the most credits; each row returns twice.
constexpr std::size_t returns_per_stream = std::size_t{4} * worker_protocol::max_credits;

// A stream that is being replayed.
struct OpenWorkerStream {
  OpenWorkerStream(recording::Recordings& recordings, const RecordedStream& stream,
                   std::size_t its_index, const ReplayPipeline& pipeline, const Pace& pace,
                   bool compares)
      : index(its_index),
        items(recordings, stream),
        comparison(compares ? std::optional<AnswerComparison>(std::in_place) : std::nullopt),
        rows(items,
             {.frames = pipeline.options.frames,
              .rule = pipeline.options.chunk,
              .other_rule = pipeline.other_rule,
              .name = stream.meta.name},
             pace, comparison ? &*comparison : nullptr),
        lines(stream.meta.number, stream.meta.name) {}

  const std::size_t index;
  StreamItems items;
  std::optional<AnswerComparison> comparison;
  ReplayedRows rows;
  EventLines lines;
  Time due = Time::max();  // its key in the set of due streams
  bool changed = false;    // it is in the list of changed streams
};

}  // namespace

struct ReplayToWorkers::Impl {
  Impl(recording::Recordings& its_recordings, std::span<const RecordedStream> its_streams,
       const ReplayPipeline& its_pipeline, const WorkersAddress& address, const ScheduleRule& rule,
       ReplayOutput& its_output)
      : recordings(its_recordings),
        streams(its_streams),
        pipeline(its_pipeline),
        speed(rule.speed),
        output(its_output),
        schedule(metas_of(recordings, streams), rule),
        returns(main, WorkerLanes::most_streams * returns_per_stream,
                [this](std::vector<Returned>& values) { on_returned(values); }),
        lanes(pipeline, address, [this](const WorkerEvent& event) { on_worker(event); }) {}

  bool run() {
    pump(Clock::now());
    main.run();
    return !stopped;
  }

  // On the home thread: the views of the event end with the call.
  void on_worker(const WorkerEvent& event) {
    std::string text(event.what);
    if (!event.worker.empty()) text.append(": ").append(event.worker);
    if (!event.why.empty()) text.append(": ").append(event.why);
    const bool row = !event.stream.empty();  // its answer has the error already
    net::post(main, [this, text = std::move(text), row] {
      if (!row) output.notice(text);
      pump(Clock::now());
    });
  }

  void on_returned(std::vector<Returned>& values) {
    for (Returned& one : values) {
      const auto found = open.find(one.stream);
      if (found == open.end()) continue;
      OpenWorkerStream& stream = *found->second;
      if (const auto* batched = std::get_if<RowBatched>(&one.what)) {
        stream.rows.batched(batched->seq);
        mark(one.stream, stream);
      } else if (const auto* done = std::get_if<RowDone>(&one.what)) {
        on_done(one.stream, stream, *done);
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
    ++output.totals().rows;
    if (stream.comparison) stream.comparison->replayed(*row, done.answer);
    if (done.answer.kind != Answer::Kind::none && !output.compares())
      output.print(stream.lines.line(
          client_event::Result{.seq = row->seq,
                               .begin = row->begin,
                               .end = row->end(),
                               .begin_s = static_cast<double>(row->begin) / rate(),
                               .end_s = static_cast<double>(row->end()) / rate(),
                               .flags = row->flags,
                               .answer = done.answer}));
    row->is(flag::end) ? finish(id, stream) : mark(id, stream);
  }

  // An aborted stream of which no worker had a row is dropped too: without an error.
  void on_dropped(StreamId id, OpenWorkerStream& stream, const StreamDropped& dropped) {
    if (dropped.code)
      output.failed(number(id), "failed at position " + std::to_string(stream.rows.position()) +
                                    ": " + std::string(name_of(*dropped.code)));
    if (stream.comparison) stream.comparison->cut();
    finish(id, stream);
  }

  void finish(StreamId id, OpenWorkerStream& stream) {
    stream.rows.read_rest();
    AnswerComparison* const comparison = stream.comparison ? &*stream.comparison : nullptr;
    if (comparison) comparison->replayed_all();
    if (!stream.rows.problem().empty()) output.failed(number(id), stream.rows.problem());
    if (stream.rows.differs_from_live())
      output.failed(number(id), "its rows are not those of the live stream (the digest differs)");
    output.totals().frames += stream.rows.frames();
    output.totals().bytes += stream.rows.frames() * pipeline.options.frames.bytes();
    output.over(number(id), streams[stream.index].meta.name, stream.items.missing(), comparison);
    due.erase({stream.due, id});
    schedule.over(stream.index);
    open.erase(id);
  }

  // Begins streams, cuts rows, and waits for the next event.
  void pump(Time now) {
    if (stopped) return;
    while (!due.empty() && due.begin()->first <= now) mark(due.begin()->second);
    begin_streams(now);
    changing.swap(changed);
    for (const StreamId id : changing)
      if (const auto found = open.find(id); found != open.end()) cut(id, *found->second, now);
    changing.clear();
    if (!rows.empty()) lanes.hub().add(rows);
    rows.clear();
    if (!output.flush() || schedule.all_over()) return end();
    wait(now);
  }

  void begin_streams(Time now) {
    if (lanes.workers() == 0) {
      if (!std::exchange(waits, true)) output.notice("waiting for a worker");
      return;
    }
    waits = false;
    while (const auto index = schedule.next(now)) {
      if (!lanes.hub().stream_budget().try_take(1)) return;
      const RecordedStream& stream = streams[*index];
      const Pace pace{.speed = speed, .opened = from_wire(stream.meta.opened_steady), .begun = now};
      schedule.begin(*index);
      const StreamId id{stream.meta.number};
      auto& added =
          *open.emplace(id, std::make_unique<OpenWorkerStream>(recordings, stream, *index, pipeline,
                                                               pace, output.compares()))
               .first->second;
      lanes.hub().open({.id = id,
                        .name = stream.meta.name,
                        .options = stream.meta.options,
                        .returns = &returns});
      mark(id, added);
    }
  }

  void cut(StreamId id, OpenWorkerStream& stream, Time now) {
    stream.changed = false;
    while (auto row = stream.rows.next(now)) rows.push_back(Hub::AddedRow{id, std::move(*row)});
    due.erase({stream.due, id});
    stream.due = stream.rows.due();
    if (stream.due != Time::max()) due.emplace(stream.due, id);
  }

  void mark(StreamId id) {
    due.erase(due.begin());
    OpenWorkerStream& stream = *open.at(id);
    stream.due = Time::max();
    mark(id, stream);
  }
  void mark(StreamId id, OpenWorkerStream& stream) {
    if (!std::exchange(stream.changed, true)) changed.push_back(id);
  }

  void wait(Time now) {
    Time next = due.empty() ? Time::max() : due.begin()->first;
    // A worker that attaches or leaves changes the room without a message for this thread.
    if (!schedule.all_begun())
      next = std::min(next, schedule.due() > now ? schedule.due() : now + room_period);
    if (next >= timer_at && timer_at > now) return;
    timer_at = next;
    if (next == Time::max()) return;
    timer.expires_at(next);
    timer.async_wait([this](boost::system::error_code cancelled) {
      if (!cancelled) pump(Clock::now());
    });
  }

  void end() {
    stopped = !schedule.all_over();
    main.stop();
  }

  double rate() const { return pipeline.options.frames.rate; }

  recording::Recordings& recordings;
  const std::span<const RecordedStream> streams;
  const ReplayPipeline pipeline;
  const double speed;
  ReplayOutput& output;
  ReplaySchedule schedule;
  net::io_context main{1};
  net::executor_work_guard<Executor> work{main.get_executor()};
  Timer timer{main.get_executor()};
  Time timer_at = Time::max();
  std::unordered_map<StreamId, std::unique_ptr<OpenWorkerStream>> open;
  std::set<std::pair<Time, StreamId>> due;  // streams that wait for their next event
  std::vector<StreamId> changed, changing;  // streams that may have a row
  std::vector<Hub::Arrival> rows;           // for the hub
  bool waits = false;                       // for a worker
  bool stopped = false;
  ReturnBox returns;
  WorkerLanes lanes;  // ends first: its rows refer to the streams
};

ReplayToWorkers::ReplayToWorkers(recording::Recordings& recordings,
                                 std::span<const RecordedStream> streams,
                                 const ReplayPipeline& pipeline, const WorkersAddress& address,
                                 const ScheduleRule& rule, ReplayOutput& output)
    : impl_(std::make_unique<Impl>(recordings, streams, pipeline, address, rule, output)) {}
ReplayToWorkers::~ReplayToWorkers() = default;

bool ReplayToWorkers::run() { return impl_->run(); }

void ReplayToWorkers::stop() {
  net::post(impl_->main, [impl = impl_.get()] { impl->end(); });
}

std::uint16_t ReplayToWorkers::port() const { return impl_->lanes.port(); }

}  // namespace millrace
