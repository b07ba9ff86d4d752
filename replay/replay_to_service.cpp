// SPDX-License-Identifier: Apache-2.0
#include "replay/replay_to_service.h"

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "replay/client_messages.h"
#include "replay/client_replay.h"
#include "replay/selection.h"
#include "replay/service_door.h"

namespace millrace {
namespace {

using recording::RecordedStream;

// Until a connection that could not be made is tried again.
constexpr Duration retry_time = std::chrono::seconds(1);

// The service says only by a refusal how many streams it has room for.
ScheduleRule for_service(ScheduleRule rule) {
  rule.unique_names = true;
  rule.opening = 8;
  return rule;
}

// A stream that is being replayed.
struct OpenClientStream {
  OpenClientStream(recording::Recordings& recordings, const RecordedStream& stream,
                   std::unique_ptr<ServiceDoor> its_door, ServiceDoor& door, const Pace& pace,
                   ReplayOutput& output)
      : own(std::move(its_door)),
        items(recordings, stream),
        comparison(output.compares() ? std::optional<AnswerComparison>(std::in_place)
                                     : std::nullopt),
        replay(door.client(), items, stream.meta, pace, comparison ? &*comparison : nullptr,
               output) {}
  // A stream that outlives its client is lost, instead of closed: the service must not get an end.
  ~OpenClientStream() { own.reset(); }
  OpenClientStream(const OpenClientStream&) = delete;
  OpenClientStream& operator=(const OpenClientStream&) = delete;

  std::unique_ptr<ServiceDoor> own;  // null: the shared one
  StreamItems items;
  std::optional<AnswerComparison> comparison;
  ClientReplay replay;
  Time due = Time::max();  // its key in the set of due streams
};

}  // namespace

struct ReplayToService::Impl {
  using Key = std::pair<ServiceDoor*, std::uint64_t>;

  Impl(recording::Recordings& its_recordings, std::span<const RecordedStream> its_streams,
       std::string its_url, const ScheduleRule& rule, ReplayOutput& its_output)
      : recordings(its_recordings),
        streams(its_streams),
        url(std::move(its_url)),
        speed(rule.speed),
        output(its_output),
        schedule(metas_of(recordings, streams), for_service(rule)) {}

  bool run() {
    pump();
    main.run();
    return !stopped;
  }

  std::unique_ptr<ServiceDoor> make_door(const ClientSettings& settings) {
    return std::make_unique<ServiceDoor>(main.get_executor(), url, settings,
                                         [this](ServiceDoor& door, std::uint64_t stream) {
                                           const auto found = by_stream.find({&door, stream});
                                           if (found == by_stream.end()) return;
                                           advance(found->second, Clock::now());
                                           post_pump();
                                         });
  }

  // Streams end in callbacks of their doors, which must not be destroyed there.
  void post_pump() {
    if (std::exchange(pump_posted, true)) return;
    net::post(main, [this] {
      pump_posted = false;
      pump();
    });
  }

  void pump() {
    if (stopped) return;
    over.clear();
    const Time now = Clock::now();
    while (!due.empty() && due.begin()->first <= now) advance(due.begin()->second, now);
    while (!stopped) {
      const auto index = schedule.next(now);
      if (!index) break;
      begin(*index, now);
    }
    if (!output.flush() || schedule.all_over()) return end();
    const Time next = std::min(due.empty() ? Time::max() : due.begin()->first, schedule.due());
    timer.cancel();
    if (next == Time::max()) return;
    timer.expires_at(next);
    timer.async_wait([this](boost::system::error_code cancelled) {
      if (!cancelled) pump();
    });
  }

  void begin(std::size_t index, Time now) {
    schedule.begin(index);
    try {
      open_stream(index, now);
    } catch (const std::system_error& error) {
      if (error.code() != std::errc::too_many_files_open || schedule.active() == 1) throw;
      return postpone(index, now + retry_time, error.what());
    }
    advance(index, now);
  }

  void open_stream(std::size_t index, Time now) {
    const RecordedStream& stream = streams[index];
    std::unique_ptr<ServiceDoor> own;
    if (ends_without_end(recordings, stream)) own = make_door({.unsent = 1});
    ServiceDoor& door = own ? *own : *shared;
    const Pace pace{.speed = speed, .opened = from_wire(stream.meta.opened_steady), .begun = now};
    OpenClientStream& added =
        *open.emplace(index, std::make_unique<OpenClientStream>(recordings, stream, std::move(own),
                                                                door, pace, output))
             .first->second;
    by_stream[{&door, added.replay.number()}] = index;
  }

  void advance(std::size_t index, Time now) {
    OpenClientStream& stream = *open.at(index);
    due.erase({stream.due, index});
    stream.due = Time::max();
    const auto next = stream.replay.advance(now);
    if (stream.replay.opened()) {
      schedule.opened(index);
      retried = false;
    }
    if (stream.replay.opened() || stream.replay.retry_after()) answered = true;
    if (!next) return finish(index, stream, now);
    stream.due = *next;
    if (stream.due != Time::max()) due.emplace(stream.due, index);
  }

  void finish(std::size_t index, OpenClientStream& stream, Time now) {
    const recording::StreamMeta& meta = streams[index].meta;
    const ClientReplay& replay = stream.replay;
    by_stream.erase({stream.own ? stream.own.get() : shared.get(), replay.number()});
    // A lost connection beside streams that are open: one of the two processes has no room for it.
    const bool no_connection = replay.connection_lost() && !replay.opened();
    // After the last one, its descriptors may not be free yet.
    if (replay.retry_after() || (no_connection && may_retry())) {
      postpone(index, now + replay.retry_after().value_or(retry_time), replay.failure());
    } else {
      stream.replay.finish();
      if (!replay.failure().empty()) output.failed(meta.number, replay.failure());
      output.totals().frames += replay.frames();
      output.totals().bytes += replay.frames() * meta.frames.bytes();
      output.over(meta.number, meta.name, stream.items.missing(),
                  stream.comparison ? &*stream.comparison : nullptr);
      schedule.over(index);
      // There is no service: other streams would fail in the same way, each after a timeout.
      if (no_connection) end();
    }
    over.push_back(std::move(open.at(index)));
    open.erase(index);
    post_pump();
  }

  bool may_retry() { return schedule.active() > 1 || (answered && !std::exchange(retried, true)); }

  void postpone(std::size_t index, Time retry, const std::string& why) {
    if (answered && !std::exchange(noticed, true))
      output.notice("streams for which there is no room are opened later: " + why);
    schedule.postpone(index, retry);
  }

  void end() {
    stopped = !schedule.all_over();
    main.stop();
  }

  recording::Recordings& recordings;
  const std::span<const RecordedStream> streams;
  const std::string url;
  const double speed;
  ReplayOutput& output;
  ReplaySchedule schedule;
  net::io_context main{1};
  net::executor_work_guard<Executor> work{main.get_executor()};
  Timer timer{main.get_executor()};
  std::unique_ptr<ServiceDoor> shared = make_door({});
  std::map<std::size_t, std::unique_ptr<OpenClientStream>> open;  // by index
  std::vector<std::unique_ptr<OpenClientStream>> over;            // destroyed by the next pump()
  std::map<Key, std::size_t> by_stream;
  std::set<std::pair<Time, std::size_t>> due;
  bool answered = false;  // the service has opened or refused a stream
  bool retried = false;   // without other streams, since a stream was opened
  bool noticed = false;   // that there is no room
  bool pump_posted = false;
  bool stopped = false;
};

ReplayToService::ReplayToService(recording::Recordings& recordings,
                                 std::span<const RecordedStream> streams, const std::string& url,
                                 const ScheduleRule& rule, ReplayOutput& output)
    : impl_(std::make_unique<Impl>(recordings, streams, url, rule, output)) {}
ReplayToService::~ReplayToService() = default;

bool ReplayToService::run() { return impl_->run(); }

void ReplayToService::stop() {
  net::post(impl_->main, [impl = impl_.get()] { impl->end(); });
}

}  // namespace millrace
