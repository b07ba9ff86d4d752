// SPDX-License-Identifier: Apache-2.0
#include "service/pipelines/io_thread.h"

#include <pthread.h>

#include <algorithm>
#include <string>
#include <utility>

#include "schemas/worker_messages.h"
#include "service/pipelines/notice.h"
#include "service/pipelines/run_until_stopped.h"
#include "transport/websocket/read_ahead.h"

namespace millrace {

namespace {

// Twice the rows that a stream can have at a worker with the most credits, each taken and done. A
// bound, not memory: that grows with what is there.
constexpr std::size_t returns_per_stream = std::size_t{4} * worker_protocol::max_credits;

}  // namespace

IoThread::IoThread(std::uint32_t index, std::size_t max_streams, const ConnectionLimits& limits,
                   LogWriter& writer)
    : index_(index),
      usual_(limits),
      log_(writer, thread_stats_),
      scope_(context_.get_executor(), limits_, door_stats_,
             [this](std::string_view why) {
               log_.error("a connection failed", {{"why", why}});
             }),
      returns_(context_, max_streams * returns_per_stream,
               [this](std::vector<Returned>& returned) {
                 admission_->table().take(returned);
                 returned_.notify();
               }),
      returned_(context_.get_executor()) {
  scope_.report_refused([this](std::string_view peer, std::string_view why) {
    log_.info("a connection was refused", {{"peer", peer}, {"why", why}});
  });
  drain_.start();
}

IoThread::~IoThread() { stop(); }

void IoThread::set_pipelines(std::span<const std::unique_ptr<Pipeline>> pipelines,
                             SharedAdmission& shared, std::uint32_t threads) {
  admission_ = std::make_unique<ThreadAdmission>(
      pipelines, ThreadAdmission::Thread{shared, returns_, log_, index_, threads});
  admission_->table().when_empty([this] { drain_step_.cancel(); });
}

void IoThread::listen(Acceptor acceptor, ClientGate& gate) {
  server_.emplace(scope_, std::move(acceptor), millrace_v1_.emplace(*admission_), gate);
}

void IoThread::listen_zeromq(const ZeromqBinding& binding, ClientGate& gate) {
  zeromq_.emplace(scope_, binding, *admission_, gate);
}

void IoThread::run() {
  started_ = true;
  scope_.start();
  server_->start();
  if (zeromq_) zeromq_->start();
  lag_.start();
  thread_ = std::jthread([this] { run_until_stopped(context_, log_); });
  pthread_setname_np(thread_.native_handle(), ("io-" + std::to_string(index_)).c_str());
}

void IoThread::drain(Time notice_ends, std::function<void()> drained) {
  drained_ = std::move(drained);
  notice_ends_ = notice_ends;
  drain_step_.cancel();
}

void IoThread::relieve(Overload action, std::uint64_t spare, bool ends_largest) {
  action_ = action;
  spare_ = spare;
  if (ends_largest) ends_largest_ = true;  // not taken back by the next word, if the thread is late
  if (told_.exchange(true)) return;
  try {
    post([this] { relieve_now(); });
  } catch (...) {  // there is no memory for it
    told_ = false;
    throw;
  }
}

void IoThread::relieve_now() {
  told_ = false;
  const bool ends_largest = ends_largest_.exchange(false);  // before what was said with it is read
  const Overload action = action_;
  const bool short_of_it = action >= Overload::close_idle;
  share_out(spare_);
  limits_.mute = short_of_it ? usual_.ping + usual_.close : usual_.mute;
  if (!short_of_it) return largest_.store(0, std::memory_order_relaxed);
  Stream* largest = admission_->table().largest();
  if (ends_largest && action == Overload::reset_largest && largest) {
    const std::string held = std::to_string(largest->reclaimable());
    largest->evict(Clock::now());
    log_.warning("a stream ended for want of memory",
                 {{"stream", largest->settings().name}, {"bytes", held}});
    largest = admission_->table().largest();
  }
  largest_.store(largest ? largest->reclaimable() : 0, std::memory_order_relaxed);
}

// Frames get a half, what was read behind them and has to wait there the other.
void IoThread::share_out(std::uint64_t spare) {
  admission_->allow(spare / 2);
  net::use_service<ReadBuffer>(context_).allow(spare / 2 /
                                               std::max<std::size_t>(scope_.connections(), 1));
}

Task<> IoThread::end_streams() {
  while (!drained_) {
    drain_step_.expires_at(Time::max());
    co_await drain_step_.async_wait(no_throw);
  }
  server_->stop_accepting();
  admission_->refuse_all();
  co_await give_notice();
  scope_.drain();
  admission_->table().drain(Clock::now());
  co_await scope_.join();
  while (!cut_off_ && !admission_->table().empty()) co_await returned_.wait();
  drained_();
}

Task<> IoThread::give_notice() {
  StreamTable& streams = admission_->table();
  Notice notice(streams.without_goaway(), Clock::now(), notice_ends_);
  while (!cut_off_ && !streams.empty() && Clock::now() < notice_ends_) {
    for (const StreamId id : notice.take_due(Clock::now()))
      if (Stream* stream = streams.find(id)) stream->goaway();
    drain_step_.expires_at(notice.next());
    co_await drain_step_.async_wait(no_throw);
  }
}

bool IoThread::has_clients() const {
  // The ZeroMQ server is one of the connections.
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
  // Coroutines that still run end while everything that they use is there.
  if (server_) server_->stop_accepting();
  scope_.stop();
  context_.restart();
  context_.poll();
}

Task<> IoThread::measure_lag() {
  Timer timer(context_.get_executor());
  for (;;) {
    const Time due = Clock::now() + tick_period;
    timer.expires_at(due);
    co_await timer.async_wait(no_throw);
    thread_stats_.lag.observe(Clock::now() - due);
    ticks_.add();
    log_.sum_up();
  }
}

}  // namespace millrace
