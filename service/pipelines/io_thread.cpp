// SPDX-License-Identifier: Apache-2.0
#include "service/pipelines/io_thread.h"

#include <pthread.h>

#include <algorithm>
#include <string>
#include <utility>

#include "schemas/worker_messages.h"
#include "service/log/wall_clock.h"
#include "service/pipelines/goaway_schedule.h"
#include "service/pipelines/run_until_stopped.h"
#include "transport/websocket/read_ahead.h"

namespace millrace {

namespace {

// Twice the rows that a stream can have at a worker with the most credits; each row returns twice,
// as taken and as done. This is a limit: the queue's memory grows with its content.
constexpr std::size_t returns_per_stream =
    std::size_t{4} * worker_protocol::max_credits + most_messages;

}  // namespace

IoThread::IoThread(std::uint32_t index, std::size_t max_streams, const ConnectionLimits& limits,
                   LogWriter& writer)
    : index_(index),
      configured_(limits),
      log_(writer, thread_stats_),
      scope_(context_.get_executor(), limits_, transport_stats_,
             [this](std::string_view why) {
               log_.error("connection failed", {{"why", why}});
             }),
      returns_(context_, max_streams * returns_per_stream,
               [this](std::vector<Returned>& returned) {
                 admission_->table().deliver(returned);
                 returned_.notify();
               }),
      returned_(context_.get_executor()) {
  scope_.report_refused([this](std::string_view peer, std::string_view why) {
    log_.info("connection refused", {{"peer", peer}, {"why", why}});
  });
  drain_.start();
}

IoThread::~IoThread() { stop(); }

void IoThread::set_pipelines(std::span<const std::unique_ptr<Pipeline>> pipelines,
                             SharedAdmission& shared, ThreadRecording* recording,
                             std::uint32_t threads) {
  recording_ = recording;
  admission_ = std::make_unique<ThreadAdmission>(
      pipelines, ThreadAdmission::Thread{shared, returns_, log_, index_, threads, recording});
  admission_->table().when_empty([this] { drain_step_.cancel(); });
}

void IoThread::listen(Acceptor acceptor, ClientProtocols protocols, ClientGate& gate,
                      std::optional<Credential> credential) {
  std::vector<WebSocketProtocol*> all;
  for (const auto& protocol : protocols_.emplace_back(std::move(protocols)))
    all.push_back(protocol.get());
  servers_.push_back(std::make_unique<StreamServer>(scope_, std::move(acceptor), std::move(all),
                                                    gate, std::move(credential)));
}

void IoThread::listen_zeromq(const ZeromqBinding& binding, ClientGate& gate) {
  zeromq_.emplace(scope_, binding, *admission_, gate);
}

void IoThread::run() {
  started_ = true;
  scope_.start();
  for (const auto& server : servers_) server->start();
  if (zeromq_) zeromq_->start();
  lag_.start();
  if (recording_) hand_over_.start();
  thread_ = std::jthread([this] { run_until_stopped(context_, log_); });
  pthread_setname_np(thread_.native_handle(), ("io-" + std::to_string(index_)).c_str());
}

void IoThread::drain(Time notice_ends, std::function<void()> drained) {
  drained_ = std::move(drained);
  notice_ends_ = notice_ends;
  drain_step_.cancel();
}

void IoThread::finish_records(std::function<void()> handed_over) {
  handed_over_ = std::move(handed_over);
  hand_over_step_.cancel();
}

void IoThread::apply_pressure(Overload action, std::uint64_t spare, bool evicts_largest) {
  action_ = action;
  spare_ = spare;
  // Never cleared here: if the thread is late, a later call must not undo it.
  if (evicts_largest) evicts_largest_ = true;
  if (pressure_posted_.exchange(true)) return;
  try {
    post([this] { apply_posted_pressure(); });
  } catch (...) {  // no memory for the post
    pressure_posted_ = false;
    throw;
  }
}

void IoThread::apply_posted_pressure() {
  pressure_posted_ = false;
  // Read before action_: so the action of the same call, or of a later one, decides below.
  const bool evicts_largest = evicts_largest_.exchange(false);
  const Overload action = action_;
  if (recording_) recording_->shed(action >= Overload::shed_recording);
  const bool closes_idle = action >= Overload::close_idle;
  limit_memory(spare_);
  limits_.message_idle =
      closes_idle ? configured_.ping + configured_.close : configured_.message_idle;
  if (!closes_idle) return largest_stream_bytes_.store(0, std::memory_order_relaxed);
  if (action == Overload::reset_largest) end_oldest_over();
  Stream* largest = admission_->table().largest();
  if (evicts_largest && action == Overload::reset_largest && largest) {
    const std::string held = std::to_string(largest->reclaimable());
    largest->evict(Clock::now());
    log_.warning("stream evicted: memory is short",
                 {{"stream", largest->settings().name}, {"bytes", held}});
    largest = admission_->table().largest();
  }
  largest_stream_bytes_.store(largest ? largest->reclaimable() : 0, std::memory_order_relaxed);
}

void IoThread::end_oldest_over() {
  ResumableStreams& streams = admission_->resumables();
  ResumableStream* const oldest = streams.oldest_over();
  if (!oldest) return;
  log_.warning("messages of an ended stream dropped: memory is short",
               {{"stream", oldest->stream().settings().name},
                {"bytes", std::to_string(oldest->kept_bytes())}});
  streams.remove(*oldest);
}

// Half is for frames. The other half is for unread bytes, divided among the connections.
void IoThread::limit_memory(std::uint64_t spare) {
  admission_->allow(spare / 2);
  net::use_service<ReadBuffer>(context_).allow(spare / 2 /
                                               std::max<std::size_t>(scope_.connections(), 1));
}

Task<> IoThread::run_drain() {
  while (!drained_) {
    drain_step_.expires_at(Time::max());
    co_await drain_step_.async_wait(no_throw);
  }
  admission_->refuse_all();
  admission_->resumables().drain();
  co_await send_goaways();
  scope_.drain();
  admission_->table().drain(Clock::now());
  co_await scope_.join();
  while (!cut_off_ && !admission_->table().empty()) co_await returned_.wait();
  for (const auto& server : servers_) server->stop_accepting();  // late clients got an answer
  drained_();
}

Task<> IoThread::send_goaways() {
  StreamTable& streams = admission_->table();
  GoawaySchedule schedule(streams.without_goaway(), Clock::now(), notice_ends_);
  while (!cut_off_ && !streams.empty() && Clock::now() < notice_ends_) {
    for (const StreamId id : schedule.take_due(Clock::now()))
      if (Stream* stream = streams.find(id)) stream->goaway();
    drain_step_.expires_at(schedule.next_due());
    co_await drain_step_.async_wait(no_throw);
  }
}

bool IoThread::has_clients() const {
  // The ZeroMQ server counts as one of the connections.
  return scope_.connections() > (zeromq_ ? 1 : 0) || !admission_->table().empty() ||
         (zeromq_ && !zeromq_->is_idle());
}

bool IoThread::cut_off() {
  const bool cuts = has_clients();
  cut_off_ = true;
  scope_.stop();
  returned_.notify();
  drain_step_.cancel();
  return cuts;
}

void IoThread::stop() {
  context_.stop();
  if (!std::exchange(started_, false)) return;
  if (thread_.joinable()) thread_.join();
  // Coroutines that still run must end before the objects that they use.
  for (const auto& server : servers_) server->stop_accepting();
  admission_->resumables().drain();  // while its pipelines exist
  scope_.stop();
  context_.restart();
  context_.poll();
}

Task<> IoThread::hand_over_records() {
  for (;;) {
    hand_over_step_.expires_after(recording_->hand_over_period());
    co_await hand_over_step_.async_wait(no_throw);
    if (!recording_->hand_over() || !handed_over_) continue;
    handed_over_();
    handed_over_ = nullptr;
  }
}

Task<> IoThread::measure_lag() {
  Timer timer(context_.get_executor());
  for (;;) {
    const Time due = Clock::now() + tick_period;
    timer.expires_at(due);
    co_await timer.async_wait(no_throw);
    thread_stats_.lag.observe(Clock::now() - due);
    ticks_.add();
    admission_->resumables().sweep(Clock::now());
    admission_->permits().check(wall_clock(), Clock::now());
    log_.sum_up();
  }
}

}  // namespace millrace
