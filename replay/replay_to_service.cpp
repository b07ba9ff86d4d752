// SPDX-License-Identifier: Apache-2.0
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
#include "replay/replay.h"
#include "replay/service_door.h"

namespace millrace {
namespace {

using recording::StreamParts;

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
  OpenClientStream(recording::Recordings& recordings, const StreamParts& stream,
                   std::unique_ptr<ServiceDoor> its_door, ServiceDoor& door, const Pace& pace,
                   ReplayOutput& output)
      : own(std::move(its_door)),
        items(recordings, stream),
        comparison(output.compares() ? std::optional<AnswerComparison>(std::in_place)
                                     : std::nullopt),
        replay(door.client(), items, stream.front().meta, pace, comparison ? &*comparison : nullptr,
               output) {}
  // A stream that outlives its client is lost, instead of closed: the service must not get an end.
  ~OpenClientStream() { own.reset(); }
  OpenClientStream(const OpenClientStream&) = delete;
  OpenClientStream& operator=(const OpenClientStream&) = delete;

  std::unique_ptr<ServiceDoor> own;  // null: the shared one
  recording::JoinedReader items;
  std::optional<AnswerComparison> comparison;
  ClientReplay replay;
  Time due = Time::max();  // its key in the set of due streams
};

class ReplayToService final : public Replay {
 public:
  ReplayToService(recording::Recordings& recordings, std::span<const StreamParts> streams,
                  std::string url, ServiceAccess access, const ScheduleRule& rule,
                  ReplayOutput& output)
      : Replay(recordings, streams, for_service(rule), output),
        url_(std::move(url)),
        access_(std::move(access)) {}

 private:
  using Key = std::pair<ServiceDoor*, std::uint64_t>;

  std::unique_ptr<ServiceDoor> make_door(const ClientSettings& settings) {
    return std::make_unique<ServiceDoor>(main_.get_executor(), url_, settings, access_,
                                         [this](ServiceDoor& door, std::uint64_t stream) {
                                           const auto found = by_stream_.find({&door, stream});
                                           if (found == by_stream_.end()) return;
                                           advance(found->second, Clock::now());
                                           post_pump();
                                         });
  }

  // Streams end in callbacks of their doors, which must not be destroyed there.
  void post_pump() {
    if (std::exchange(pump_posted_, true)) return;
    net::post(main_, [this] {
      pump_posted_ = false;
      pump(Clock::now());
    });
  }

  void pump(Time now) override {
    if (stopped_) return;
    over_.clear();
    while (!due_.empty() && due_.begin()->first <= now) advance(due_.begin()->second, now);
    while (!stopped_) {
      const auto index = schedule_.next(now);
      if (!index) break;
      begin(*index, now);
    }
    if (!output_.flush() || schedule_.all_over()) return end();
    wait(std::min(due_.empty() ? Time::max() : due_.begin()->first, schedule_.due()), now);
  }

  void begin(std::size_t index, Time now) {
    schedule_.begin(index);
    try {
      open_stream(index, now);
    } catch (const std::system_error& error) {
      if (error.code() != std::errc::too_many_files_open || schedule_.active() == 1) throw;
      return postpone(index, now + retry_time, error.what());
    }
    advance(index, now);
  }

  void open_stream(std::size_t index, Time now) {
    const StreamParts& stream = streams_[index];
    std::unique_ptr<ServiceDoor> own;
    if (ends_without_end(recordings_, stream.back())) own = make_door({.unsent = 1});
    ServiceDoor& door = own ? *own : *shared_;
    OpenClientStream& added = *open_
                                   .emplace(index, std::make_unique<OpenClientStream>(
                                                       recordings_, stream, std::move(own), door,
                                                       pace_of(stream, now), output_))
                                   .first->second;
    by_stream_[{&door, added.replay.number()}] = index;
  }

  void advance(std::size_t index, Time now) {
    OpenClientStream& stream = *open_.at(index);
    due_.erase({stream.due, index});
    stream.due = Time::max();
    const auto next = stream.replay.advance(now);
    if (stream.replay.opened()) {
      schedule_.opened(index);
      retried_ = false;
    }
    if (stream.replay.opened() || stream.replay.retry_after()) answered_ = true;
    if (!next) return finish(index, stream, now);
    stream.due = *next;
    if (stream.due != Time::max()) due_.emplace(stream.due, index);
  }

  void finish(std::size_t index, OpenClientStream& stream, Time now) {
    const recording::StreamMeta& meta = streams_[index].front().meta;
    const ClientReplay& replay = stream.replay;
    by_stream_.erase({stream.own ? stream.own.get() : shared_.get(), replay.number()});
    // A lost connection beside streams that are open: one of the two processes has no room for it.
    const bool no_connection = replay.connection_lost() && !replay.opened();
    // After the last one, its descriptors may not be free yet.
    if (replay.retry_after() || (no_connection && may_retry())) {
      postpone(index, now + replay.retry_after().value_or(retry_time), replay.failure());
    } else {
      stream.replay.finish();
      if (!replay.failure().empty()) output_.failed(meta.number, replay.failure());
      output_.totals().frames += replay.frames();
      output_.totals().bytes += replay.frames() * meta.frames.bytes();
      output_.over(meta.number, meta.name, stream.items.missing(),
                   stream.comparison ? &*stream.comparison : nullptr);
      schedule_.over(index);
      // There is no service: other streams would fail in the same way, each after a timeout.
      if (no_connection) end();
    }
    over_.push_back(std::move(open_.at(index)));
    open_.erase(index);
    post_pump();
  }

  bool may_retry() {
    return schedule_.active() > 1 || (answered_ && !std::exchange(retried_, true));
  }

  void postpone(std::size_t index, Time retry, const std::string& why) {
    if (answered_ && !std::exchange(noticed_, true))
      output_.notice("streams for which there is no room are opened later: " + why);
    schedule_.postpone(index, retry);
  }

  const std::string url_;
  const ServiceAccess access_;
  std::unique_ptr<ServiceDoor> shared_ = make_door({});
  std::map<std::size_t, std::unique_ptr<OpenClientStream>> open_;  // by index
  std::vector<std::unique_ptr<OpenClientStream>> over_;            // destroyed by the next pump()
  std::map<Key, std::size_t> by_stream_;
  std::set<std::pair<Time, std::size_t>> due_;
  bool answered_ = false;  // the service has opened or refused a stream
  bool retried_ = false;   // without other streams, since a stream was opened
  bool noticed_ = false;   // that there is no room
  bool pump_posted_ = false;
};

}  // namespace

std::unique_ptr<Replay> replay_to_service(recording::Recordings& recordings,
                                          std::span<const StreamParts> streams,
                                          const std::string& url, const ServiceAccess& access,
                                          const ScheduleRule& rule, ReplayOutput& output) {
  return std::make_unique<ReplayToService>(recordings, streams, url, access, rule, output);
}

}  // namespace millrace
