// SPDX-License-Identifier: Apache-2.0
#include "workers/library/attachment.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/quiet_thread.h"
#include "gpu/host/slab_layout.h"
#include "schemas/worker_protocol.h"
#include "workers/library/copy_polling.h"
#include "workers/library/handshake.h"

namespace millrace {
namespace {

using namespace worker_protocol;

// Most batches that a watcher holds. Further batches stay in the service, which drops some of them.
constexpr std::size_t max_watcher_batches = 8;

// A time limit of Time::max() would overflow in std::condition_variable.
constexpr Duration longest_wait = std::chrono::hours(1);

}  // namespace

Attachment::Attachment(const std::string& url, const WorkerSettings& settings,
                       const std::function<void()>& meanwhile)
    : settings_(settings),
      device_(settings.device),
      link_(url, meanwhile),
      welcome_(link_.shake_hands(hello_of(settings, device_), meanwhile)),
      order_(order_of(settings, welcome_)),
      slabs_(welcome_, link_.take_descriptor()),
      streams_(answers_rows() ? welcome_.slots : 0) {
  heartbeat_thread_ =
      quiet_thread("millrace-beat", [this](const std::stop_token& stop) { run_heartbeat(stop); });
  const bool gets_batches = !settings.watch && !(settings.trainer && settings.trainer->plan_only);
  if (gets_batches) device_.attach(welcome_, settings.credits, slabs_.shared());
  if (!device_.cannot_open_slabs()) return;
  Encoder encoder;
  Lock lock(mutex_);
  send(lock, encoder.encode(Unmapped{}));
}

std::optional<WorkerBatch> Attachment::next_until(Time deadline) {
  Lock lock(mutex_);
  std::optional<CopyPolling> polling;  // for the first batch
  std::optional<PreciseTimers> precise;
  for (;;) {
    const Time now = Clock::now();
    read(now);
    if (interruption_.consume()) return std::nullopt;
    if (must_throw()) throw *lost_;
    if (has_arrived(lock)) return take_first(lock);
    if (closed_) ready_.clear();  // the batches that have not arrived never will
    if ((ready_.empty() && ending_) || closed_ || now >= deadline) return std::nullopt;
    Time poll_at = std::min(deadline, silent_at());
    if (!ready_.empty()) {
      if (!polling) polling.emplace(layout_of(ready_.front().slab().shape).bytes, now);
      poll_at = polling->next(now);
      if (poll_at > now && !precise) precise.emplace();
    }
    taking_ = true;
    wait_for_news(lock, poll_at);
    taking_ = false;
  }
}

// Waits until the socket or the interruption may be readable, or another thread has read. Call
// read() afterwards. One thread at a time waits for the socket: of two, one could read what the
// other waits for, which would continue to wait.
void Attachment::wait_for_news(Lock& lock, Time until) {
  if (reading_) {
    read_.wait_until(lock, std::min(until, Clock::now() + longest_wait));
    return;
  }
  reading_ = true;
  const auto what = link_.until_readable();
  lock.unlock();
  link_.wait(until, what, interruption_.descriptor());
  lock.lock();
  reading_ = false;
  read_.notify_all();  // another thread must wait for the socket if this one does not again
}

// The batches of a trainer that were received stay valid: they are taken first.
bool Attachment::must_throw() const { return lost_ && (!settings_.trainer || ready_.empty()); }

WorkerBatch Attachment::take_first(Lock& lock) {
  WorkerBatch batch = std::move(ready_.front());
  ready_.erase(ready_.begin());
  batch.set_taken(Clock::now());
  taken_.push_back({batch.id(), batch.taken()});
  lock.unlock();
  lost_states_.add_resets(batch);
  try {
    take_on_device(batch);
  } catch (const WorkerError&) {
    lock.lock();
    taken_.pop_back();
    ready_.insert(ready_.begin(), std::move(batch));
    throw;
  }
  lock.lock();
  if (answers_rows()) streams_.taken(batch);
  return batch;
}

void Attachment::done(WorkerBatch& batch, std::span<const Answer> answers,
                      std::span<const Answer> mark_answers) {
  Lock lock(mutex_);
  const auto taken = std::ranges::find(taken_, batch.id(), &Taken::id);
  if (taken == taken_.end() || (!settings_.trainer && taken != taken_.begin()))
    throw std::logic_error(
        settings_.trainer
            ? "done() must be called once per batch"
            : "done() must be called once per batch, in the order in which batches were taken");
  lock.unlock();
  give_back_on_device(batch);
  lock.lock();
  std::erase_if(taken_, [&](const Taken& one) { return one.id == batch.id(); });
  Done message;
  message.batch = batch.id();
  message.taken = batch.taken();
  message.done = Clock::now();
  slabs_.release(batch.slab());
  if (!settings_.watch) send(lock, encoder_.encode(message, answers, mark_answers));
  // Afterwards: the answer to a pending row must not go before its batch.
  if (answers_rows()) streams_.done(batch, answers, mark_answers);
  link_.reuse(batch.release());
}

void Attachment::bye() {
  const Lock lock(mutex_);
  send_bye();
}

void Attachment::close() {
  const Lock lock(mutex_);
  if (has_ended()) return;
  closed_ = true;
  ready_.clear();
  link_.end();
}

bool Attachment::ended() const {
  const Lock lock(mutex_);
  return lost_ || (ready_.empty() && (ending_ || closed_));
}

Company Attachment::company() const {
  const Lock lock(mutex_);
  return company_;
}

// Receives first: a failed send must not hide the service's last messages. Checks its silence after
// that, because this process itself may have been suspended.
void Attachment::read(Time now) {
  receive_all();
  read_.notify_all();
  if (has_ended()) return;
  if (has_room() && now - link_.last_received() > settings_.heartbeats.silence)
    return mark_lost(WorkerError("nothing was received from the service for too long"));
  try {
    if (link_.has_output()) link_.flush();
  } catch (const WorkerError& error) {
    mark_send_failed(error);
  }
}

void Attachment::receive_all() {
  try {
    while (!has_ended() && has_room()) {
      auto message = link_.receive();
      if (!message) return;
      receive(std::move(*message));
    }
  } catch (const WorkerError& error) {
    mark_lost(error);
  } catch (const std::exception& error) {  // memory is short
    mark_lost(WorkerError(error.what()));
  }
}

bool Attachment::has_room() const {
  return !settings_.watch || ready_.size() < max_watcher_batches;
}

void Attachment::receive(ToWorker message) {
  if (auto* batch = std::get_if<HandedBatch>(&message)) {
    receive_batch(std::move(*batch));
  } else if (const auto* others = std::get_if<Company>(&message)) {
    company_ = *others;
    if (settings_.alone && company_.workers > 0) send_bye();
  } else if (const auto* room = std::get_if<Room>(&message)) {
    streams_.give_room(room->stream, room->bytes);
  } else if (std::holds_alternative<Bye>(message)) {
    ending_ = true;
  } else if (const auto* refused = std::get_if<Refused>(&message)) {
    if (settings_.trainer) throw WorkerError(refused->message, refused->code, refused->details);
    throw WorkerLink::refusal("the service ended the connection: ", *refused, held_batches_text());
  } else if (std::holds_alternative<Welcome>(message)) {
    throw WorkerError("the service sent a second Welcome");
  }
}

void Attachment::receive_batch(HandedBatch batch) {
  const std::size_t held = ready_.size() + taken_.size();
  if (ending_ || (!settings_.watch && held >= settings_.credits))
    throw WorkerError("the service sent more batches than it has credits for");
  if (last_batch_ && number(batch.id) <= number(*last_batch_))
    throw WorkerError("the service sent batches out of order");
  if (order_ && (batch.steps == 0 || !order_->accept(batch)))
    throw WorkerError("the server skipped or repeated a step");
  last_batch_ = batch.id;
  auto received = slabs_.make_batch(std::move(batch));
  if (!received) throw WorkerError("the service sent a batch that does not match its Welcome");
  if (answers_rows()) streams_.received(*received);
  ready_.push_back(std::move(*received));
}

void Attachment::fail(WorkerBatch& batch, const std::string& why) {
  const Answer error{Answer::Kind::error, why};
  const std::vector<Answer> answers(batch.framed().size(), error);
  const std::vector<Answer> mark_answers(batch.marks().size(), error);
  lost_states_.add(batch);
  done(batch, answers, mark_answers);
}

// For errors: the batches that this worker holds, which explain why the service disconnected it.
std::string Attachment::held_batches_text() const {
  if (taken_.empty() && ready_.empty()) return "; this worker held no batch";
  const Time now = Clock::now();
  if (taken_.empty())
    return "; batch " + std::to_string(number(ready_.front().id())) + " was received and not taken";
  const auto seconds_held = std::chrono::duration<double>(now - taken_.front().at).count();
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.1f", seconds_held);
  return "; batch " + std::to_string(number(taken_.front().id)) + " was taken " + seconds +
         " s ago and not returned: was done() not called, or is the model slow?";
}

// The end is as agreed after the service's Bye, or after this worker's Bye if it holds no batches.
void Attachment::mark_lost(const WorkerError& reason) {
  if (has_ended()) return;
  if (ending_ || (leaving_ && ready_.empty() && taken_.empty())) {
    closed_ = true;
  } else {
    lost_ = reason;
  }
  link_.end();
}

// The service may have sent its last batches, and Bye or Refused, before it closed the connection.
void Attachment::mark_send_failed(const WorkerError& error) {
  receive_all();
  mark_lost(error);
}

}  // namespace millrace
