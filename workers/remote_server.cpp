// SPDX-License-Identifier: Apache-2.0
#include "workers/remote_server.h"

#include <chrono>
#include <exception>
#include <utility>
#include <variant>
#include <vector>

#include "workers/protocol.h"

namespace millrace {

namespace wp = worker_protocol;

namespace {

// How long one whose connection is over may take to read what it was told last, and to leave.
constexpr auto last_words = std::chrono::seconds(2);

// A peer that has not said Hello yet sends no longer message.
constexpr std::size_t max_hello = std::size_t{64} << 10;

// An answer may be long and its network slow: the heartbeats of both ends tell whether it comes.
constexpr std::chrono::hours any_time{24};

constexpr const char* parts = "a message of more than one part";
constexpr const char* refused = "worker refused";
constexpr const char* failed = "worker's connection failed";

ZeromqBinding binding(const std::string& endpoint, Duration patience) {
  ZeromqBinding binding{
      .endpoint = endpoint, .max_message = wp::max_to_service, .max_first = max_hello};
  binding.times.message = any_time;
  binding.times.greeting = std::chrono::duration_cast<std::chrono::milliseconds>(patience);
  binding.times.silence =
      std::chrono::duration_cast<std::chrono::milliseconds>(wp::Heartbeats().silence);
  return binding;
}

}  // namespace

struct RemoteServer::Worker {
  explicit Worker(ZeromqPeer peer) : line(peer) {}

  RemoteLine line;
  RemoteWorkers* home = nullptr;  // null once that has no more to do with it
  Ring<ZeromqMessage> outbox;
  bool muted = false;  // it did what ends it; its home thread was told
  bool lost = false;
};

RemoteServer::RemoteServer(net::io_context& io, const std::string& endpoint,
                           WorkerReception reception, std::uint64_t max_unread)
    : reception_(std::move(reception)),
      unread_(max_unread),
      from_homes_(io, max_messages,
                  [this](std::vector<ToRemote>& arrivals) {
                    for (ToRemote& arrival : arrivals) take(std::move(arrival));
                  }),
      timer_(io.get_executor()),
      decoder_(wp::max_to_service),
      router_(io.get_executor(), binding(endpoint, reception_.patience), connections_, stats_) {}

RemoteServer::~RemoteServer() = default;

void RemoteServer::start() { router_.start(*this); }

void RemoteServer::received(ZeromqPeer peer, ZeromqMessage message) {
  const auto found = workers_.find(peer);
  if (found == workers_.end()) return greet(peer, message.bytes());
  Worker& worker = *found->second;
  if (!worker.home || worker.muted) return;
  const std::size_t weight = weight_of(message.bytes());
  Share room;
  if (worker.line.unread.load(std::memory_order_relaxed) + weight > own_unread) {
    room = Share(unread_, weight);
    if (!room) return mute(worker, FromRemote::NoRoom{});
  } else {
    worker.line.unread.fetch_add(weight, std::memory_order_relaxed);
  }
  worker.home->put({&worker.line, std::move(message), std::move(room)});
}

void RemoteServer::malformed(ZeromqPeer peer) {
  const auto found = workers_.find(peer);
  if (found == workers_.end())
    return act_or_cut(peer, refused, [&] { refuse(peer, "", {"protocol", parts}); });
  if (found->second->home && !found->second->muted)
    mute(*found->second, FromRemote::Malformed{parts});
}

// It hears from its home thread why, and is cut.
void RemoteServer::mute(Worker& worker, FromRemote::What why) {
  worker.muted = true;
  worker.home->put({.line = &worker.line, .what = std::move(why)});
}

void RemoteServer::writable(ZeromqPeer peer) {
  const auto found = workers_.find(peer);
  if (found != workers_.end()) act_or_cut(peer, failed, [&] { flush(*found->second); });
}

void RemoteServer::lost(ZeromqPeer peer) {
  const auto found = workers_.find(peer);
  if (found == workers_.end()) return;
  Worker& worker = *found->second;
  worker.outbox.clear();
  worker.lost = true;
  if (!worker.home) return (void)workers_.erase(found);
  worker.home->put({.line = &worker.line, .what = FromRemote::Lost{}});
}

// What fails, for want of memory most likely, costs this one.
template <class Act>
void RemoteServer::act_or_cut(ZeromqPeer peer, std::string_view what, Act act) {
  try {
    act();
  } catch (const std::exception& error) {
    router_.cut(peer);
    reception_.log({.what = what, .worker = "", .why = error.what(), .warning = true});
  }
}

void RemoteServer::greet(ZeromqPeer peer, Bytes message) {
  if (workers_.size() >= max_remote_lines) {
    router_.cut(peer);
    return reception_.log({.what = refused,
                           .worker = "",
                           .why = "there are as many as there may be",
                           .warning = true});
  }
  act_or_cut(peer, refused, [&] {
    auto decoded = decoder_.to_service(message);
    auto* hello = decoded ? std::get_if<wp::Hello>(&*decoded) : nullptr;
    if (!hello) return refuse(peer, "", {"protocol", "the first message is Hello"});
    dispatch(peer, std::move(*hello));
  });
}

void RemoteServer::dispatch(ZeromqPeer peer, wp::Hello hello) {
  const auto home = reception_.home_of(hello);
  if (!home) return refuse(peer, hello.name, home.error());
  auto& worker = *workers_.emplace(peer, std::make_unique<Worker>(peer)).first->second;
  worker.home = &workers_of(*home);
  worker.home->put({.line = &worker.line, .what = std::move(hello)});
}

RemoteWorkers& RemoteServer::workers_of(const HubHome& home) {
  auto& workers = homes_[home.hub];
  if (!workers) workers = std::make_unique<RemoteWorkers>(*home.hub, *home.home, from_homes_);
  return *workers;
}

void RemoteServer::refuse(ZeromqPeer peer, std::string_view name, const wp::Refused& why) {
  reception_.log({.what = refused, .worker = name, .why = why.message, .warning = true});
  workers_.emplace(peer, std::make_unique<Worker>(peer));  // nothing more is heard of it
  (void)router_.send(peer, encoder_.encode(why));
  leave(peer);
}

void RemoteServer::take(ToRemote arrival) {
  Worker& worker = *workers_.at(arrival.line->peer);
  const ZeromqPeer peer = worker.line.peer;  // which it may not outlive
  act_or_cut(peer, failed, [&] { carry(worker, std::move(arrival)); });
}

void RemoteServer::carry(Worker& worker, ToRemote arrival) {
  if (auto* message = std::get_if<ZeromqMessage>(&arrival.what)) {
    if (worker.lost) return;
    worker.outbox.push_back(std::move(*message));
    return flush(worker);
  }
  worker.home = nullptr;
  if (worker.lost)
    workers_.erase(worker.line.peer);
  else
    leave(worker.line.peer);
}

void RemoteServer::flush(Worker& worker) {
  while (!worker.outbox.empty()) {
    const std::size_t weight = weight_of(worker.outbox.front().bytes());
    if (router_.send(worker.line.peer, worker.outbox.front()) != ZeromqRouter::Sent::taken) return;
    worker.outbox.pop_front();
    worker.line.unsent.fetch_sub(weight, std::memory_order_relaxed);
  }
}

// Most leave by themselves when they are told the end. Then the router knows nothing of them.
void RemoteServer::leave(ZeromqPeer peer) {
  leaving_.push_back({peer, Clock::now() + last_words});
  wait_for_leaving();  // for the first again, whose wait may have failed
}

void RemoteServer::wait_for_leaving() {
  timer_.expires_at(leaving_.front().until);
  timer_.async_wait([this](boost::system::error_code cancelled) {
    if (cancelled) return;
    while (!leaving_.empty() && leaving_.front().until <= Clock::now())
      router_.cut(leaving_.pop_front().peer);
    if (!leaving_.empty()) wait_for_leaving();
  });
}

}  // namespace millrace
