// SPDX-License-Identifier: Apache-2.0
// How workers and watchers come to a hub, and how they go.
#include <utility>

#include "workers/hub.h"

namespace millrace {

namespace wp = worker_protocol;

namespace {

constexpr char hung_up[] = "it hung up before it was welcomed";

}  // namespace

void Hub::hello(WorkerConnection& link, const wp::Hello& hello) noexcept {
  const Time now = Clock::now();
  if (dismissed_) return seats_.refuse(link, {"stopping", "the service is stopping"});
  if (hello.watch) {
    seats_.watch(link, hello, now);
    return settle(now);
  }
  if (const auto refused = seats_.prepare(link, hello)) {
    settings_.log(
        {.what = "worker refused", .worker = hello.name, .why = refused->message, .warning = true});
    seats_.refuse(link, *refused);
  }
}

void Hub::take(std::vector<MadeFeed>& made) {
  const Time now = Clock::now();
  for (MadeFeed& one : made) attach(one, now);
  settle(now);
}

// After this process was stopped, the connections that a worker gave up meanwhile still wait. Rows
// handed to one of them would count as rows of a lost worker.
void Hub::attach(MadeFeed& made, Time now) {
  const auto worker = seats_.arrive(made);
  std::optional<wp::Refused> refused;
  if (!worker || !worker->link->is_connected())
    refused = {"protocol", hung_up};
  else if (!made.feed)
    refused = made.feed.error();
  else if (const DeviceLost* lost = seats_.lost_meanwhile(*made.feed))
    refused = {code_of(*lost), lost->what};
  if (!refused) return welcome(*worker, std::move(*made.feed), now);
  if (made.feed) seats_.free(std::move(*made.feed));
  if (!worker) return;
  settings_.log(
      {.what = "worker refused", .worker = worker->name, .why = refused->message, .warning = true});
  seats_.refuse(*worker->link, *refused);
}

void Hub::welcome(const NewWorker& worker, Feed feed, Time now) {
  const LaneId lane = lanes_.attach(worker.credits, now);
  settings_.log({"worker attached", worker.name});
  book_.attached(lane, worker.name, !worker.process, now);
  if (!feed.why_it_copies.empty())
    settings_.log({.what = "worker copies",
                   .worker = worker.name,
                   .why = feed.why_it_copies,
                   .warning = true});
  seats_.seat(lane, {.link = worker.link,
                     .name = worker.name,
                     .process = worker.process,
                     .feed = std::move(feed),
                     .idle = now,
                     .without_slab = {},
                     .alone = worker.alone});
}

// A worker that is not welcomed yet may say that it lives, or leave.
void Hub::receive_early(WorkerConnection& link, const wp::ToService& message) {
  if (!seats_.find_new_worker(link) || std::holds_alternative<wp::Heartbeat>(message)) return;
  if (!std::holds_alternative<wp::Bye>(message))
    return protocol_error(link, "a message before Welcome");
  seats_.remove_new_worker(link);
  seats_.say_bye(link);
}

// A watcher has nothing to give back: it shows that it lives, and may leave.
void Hub::receive(Watcher& watcher, const wp::ToService& message) {
  watcher.heard = Clock::now();
  if (std::holds_alternative<wp::Bye>(message))
    seats_.dismiss_watcher(*watcher.link);
  else if (!std::holds_alternative<wp::Heartbeat>(message))
    protocol_error(*watcher.link, "what no watcher sends");
}

void Hub::receive_bye(LaneId lane) {
  if (lanes_.leaving(lane)) return;
  settings_.log({"worker leaves", seats_.find(lane)->name, "it said Bye"});
  const Time now = Clock::now();
  lanes_.bye(lane, now);
  seats_.leave(lane);
  settle(now);
}

void Hub::lost(WorkerConnection& link, WorkerFailure why, Blame blame) noexcept {
  if (seats_.find_watcher(link)) {
    // It takes no batches: to lose it is no failure, what it does wrong is.
    if (why == WorkerFailure::protocol) stats_.failures[why].add();
    return seats_.remove_watcher(link);
  }
  if (const NewWorker* worker = seats_.find_new_worker(link)) {
    if (why == WorkerFailure::protocol)
      stats_.failures[why].add();
    else
      settings_.log(
          {.what = "worker refused", .worker = worker->name, .why = hung_up, .warning = true});
    return seats_.remove_new_worker(link);
  }
  const auto lane = seats_.lane_of(link);
  if (!lane) return;
  const Time now = Clock::now();
  settings_.log({.what = "worker lost",
                 .worker = seats_.find(*lane)->name,
                 .why = name_of(why),
                 .warning = true});
  stats_.failures[why].add();
  book_.lost(*lane, name_of(why), now);
  lanes_.lost(*lane, blame, now);
  seats_.remove(*lane);
  settle(now);
}

}  // namespace millrace
