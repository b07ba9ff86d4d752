// SPDX-License-Identifier: Apache-2.0
#include "workers/library/attachment.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/quiet_thread.h"
#include "schemas/worker_protocol.h"

namespace millrace {
namespace {

using namespace worker_protocol;

// How often a batch is looked at whose copy to the device has not ended when its message is here: a
// few times at once, since most copies take microseconds, then once in each period.
constexpr unsigned looks_at_once = 8;
constexpr Duration look_period = std::chrono::microseconds(50);

// Batches that a watcher may fall behind; those after them wait at the service, which drops some.
constexpr std::size_t watched_batches = 8;

Hello hello_of(const WorkerSettings& settings, const WorkerDevice& device) {
  return {.pipeline = settings.pipeline,
          .name = settings.name.empty() ? std::string(::program_invocation_short_name) + " " +
                                              std::to_string(::getpid())
                                        : settings.name,
          .credits = settings.watch ? 0 : settings.credits,
          .device = device.name_for_service(),
          .watch = settings.watch,
          .alone = settings.alone};
}

// The events of a killed service may fail this long before the kernel closes its sockets.
constexpr Duration sockets_closed_after = std::chrono::seconds(1);

}  // namespace

Attachment::Attachment(const std::string& url, const WorkerSettings& settings,
                       const std::function<void()>& meanwhile)
    : settings_(settings),
      device_(settings.device),
      link_(url, meanwhile),
      welcome_(link_.shake_hands(hello_of(settings, device_), meanwhile)),
      slabs_(welcome_, link_.take_descriptor()) {
  heart_ = quiet_thread("millrace-beat", [this](const std::stop_token& stop) { beat(stop); });
  if (!settings.watch) device_.attach(welcome_, settings.credits, slabs_.shared());
  if (!device_.copies_in_vain()) return;
  Encoder encoder;
  Lock lock(mutex_);
  send(lock, encoder.encode(Unmapped{}));
}

std::optional<WorkerBatch> Attachment::next_until(Time deadline) {
  Lock lock(mutex_);
  unsigned looks = 0;
  for (;;) {
    const Time now = Clock::now();
    read(now);
    if (interruption_.take()) return std::nullopt;
    if (lost_) throw *lost_;
    if (has_arrived(lock)) return take_first(lock);
    if (closed_) ready_.clear();  // what has not arrived never will
    if ((ready_.empty() && ending_) || closed_ || now >= deadline) return std::nullopt;
    const Time look_at = ready_.empty()
                             ? std::min(deadline, link_.heard() + settings_.heartbeats.silence)
                         : looks++ < looks_at_once ? now
                                                   : now + look_period;
    const auto until = link_.until_message();
    waiting_ = true;
    lock.unlock();
    link_.wait(look_at, until, interruption_.descriptor());
    lock.lock();
    waiting_ = false;
  }
}

// Without the mutex: a driver may take its time, and heartbeats must go on meanwhile.
template <class Does>
void Attachment::on_device(Does does) {
  if (!device_.reader()) return;
  try {
    does(*device_.reader());
  } catch (const DeviceFailure& error) {
    const WorkerError reason(error.what(), "device");
    // What the device refused, as during the capture of a graph, may be done right next time.
    if (error.passes()) throw reason;
    Lock lock(mutex_);
    throw lose_after_failure(lock, reason).value_or(reason);
  }
}

void Attachment::take_on_device(WorkerBatch& batch) {
  on_device([&](DeviceReader& reader) {
    const BatchPlace& place = batch.place();
    const DeviceArrays arrays = reader.take(place.slab, place.shape, place.memory);
    if (batch.is_renewed()) reader.renew_flags(arrays, place.slab, place.shape, place.memory);
    batch.take(arrays);
  });
}

WorkerBatch Attachment::take_first(Lock& lock) {
  WorkerBatch batch = std::move(ready_.front());
  ready_.erase(ready_.begin());
  batch.take(Clock::now());
  taken_.push_back({batch.id(), batch.taken()});
  lock.unlock();
  lost_states_.renew(batch);
  try {
    take_on_device(batch);
  } catch (const WorkerError&) {
    lock.lock();
    taken_.pop_back();
    ready_.insert(ready_.begin(), std::move(batch));
    throw;
  }
  return batch;
}

void Attachment::done(WorkerBatch& batch, std::span<const Answer> answers,
                      std::span<const Answer> mark_answers) {
  Lock lock(mutex_);
  if (taken_.empty() || taken_.front().id != batch.id())
    throw std::logic_error("batches are given back once, in the order in which they were taken");
  lock.unlock();
  on_device([&](DeviceReader& reader) { reader.give_back(batch.place().slab); });
  lock.lock();
  taken_.erase(taken_.begin());
  Done message;
  message.batch = batch.id();
  message.taken = batch.taken();
  message.done = Clock::now();
  slabs_.give_back(batch.place());
  link_.reuse(batch.release());
  if (settings_.watch) return;
  send(lock, encoder_.encode(message, answers, mark_answers));
}

void Attachment::bye() {
  const Lock lock(mutex_);
  say_bye();
}

void Attachment::close() {
  const Lock lock(mutex_);
  if (over()) return;
  closed_ = true;
  ready_.clear();
  link_.end();
}

bool Attachment::ended() const {
  const Lock lock(mutex_);
  return lost_ || (ready_.empty() && (ending_ || closed_));
}

std::uint32_t Attachment::company() const {
  const Lock lock(mutex_);
  return company_;
}

// Takes in what has arrived. The service is silent only if nothing lies in the socket either:
// this process may have been stopped.
void Attachment::read(Time now) {
  if (over()) return;
  const std::size_t room =
      settings_.watch ? watched_batches : std::numeric_limits<std::size_t>::max();
  try {
    if (link_.has_output()) link_.flush();
    while (ready_.size() < room) {
      auto message = link_.receive();
      if (!message) break;
      take(std::move(*message));
    }
    if (ready_.size() < room && now - link_.heard() > settings_.heartbeats.silence)
      throw WorkerError("nothing was heard of the service for too long");
  } catch (const WorkerError& error) {
    lose(error);
  } catch (const std::exception& error) {  // memory that is short
    lose(WorkerError(error.what()));
  }
}

void Attachment::take(ToWorker message) {
  if (auto* batch = std::get_if<HandedBatch>(&message)) {
    take(std::move(*batch));
  } else if (const auto* others = std::get_if<Company>(&message)) {
    company_ = others->workers;
    if (settings_.alone && company_ > 0) say_bye();
  } else if (std::holds_alternative<Bye>(message)) {
    ending_ = true;
  } else if (const auto* refused = std::get_if<Refused>(&message)) {
    throw WorkerLink::refusal("the service ended the connection: ", *refused, in_hand());
  } else if (std::holds_alternative<Welcome>(message)) {
    throw WorkerError("the service sent a second welcome");
  }
}

void Attachment::take(HandedBatch batch) {
  const std::size_t held = ready_.size() + taken_.size();
  if (ending_ || (!settings_.watch && held >= settings_.credits))
    throw WorkerError("the service sent more batches than it may");
  if (received_ && number(batch.id) <= number(*received_))
    throw WorkerError("the service sent batches out of order");
  received_ = batch.id;
  auto placed = slabs_.place(std::move(batch));
  if (!placed) throw WorkerError("the service sent a batch that does not fit its welcome");
  ready_.push_back(std::move(*placed));
}

// Not sent where so much waits that the service does not read: it will be lost anyway.
void Attachment::say_bye() {
  if (leaving_ || over()) return;
  leaving_ = true;
  Encoder encoder;
  try {
    (void)link_.try_send(encoder.encode(Bye{}));
  } catch (const WorkerError& error) {
    lose(error);
  }
}

// Blocks until all of it is on its way, for the thread may be away for long afterwards.
void Attachment::send(Lock& lock, Bytes message) {
  const Time limit = Clock::now() + settings_.heartbeats.silence;
  try {
    for (bool taken = false; !over();) {
      if (link_.has_output()) link_.flush();
      taken = taken || link_.try_send(message);
      if (taken && !link_.has_output()) return;
      if (Clock::now() >= limit) throw WorkerError("the service does not read");
      lock.unlock();
      link_.wait(limit, WorkerLink::Until::room, -1);
      lock.lock();
    }
  } catch (const WorkerError& error) {
    lose(error);
  }
  if (lost_) throw *lost_;
}

void Attachment::beat(const std::stop_token& stop) {
  Encoder encoder;
  const Bytes heartbeat = encoder.encode(Heartbeat{});
  const Duration interval = settings_.heartbeats.interval;
  Lock lock(mutex_);
  while (!over()) {
    const Time due = std::min(link_.sent() + interval, Clock::now() + interval / 4);
    stopping_.wait_until(lock, stop, due, [] { return false; });
    if (stop.stop_requested()) return;
    if (!waiting_) read(Clock::now());
    if (!over()) send_heartbeat(heartbeat);
  }
}

void Attachment::send_heartbeat(Bytes heartbeat) {
  try {
    link_.flush();
    if (Clock::now() >= link_.sent() + settings_.heartbeats.interval)
      (void)link_.try_send(heartbeat);
  } catch (const WorkerError& error) {
    lose(error);
  }
}

void Attachment::fail(WorkerBatch& batch, const std::string& why) {
  const Answer error{Answer::Kind::error, why};
  const std::vector<Answer> answers(batch.framed().size(), error);
  const std::vector<Answer> mark_answers(batch.marks().size(), error);
  lost_states_.add(batch);
  done(batch, answers, mark_answers);
}

// What explains why a service gave this worker up.
std::string Attachment::in_hand() const {
  if (taken_.empty() && ready_.empty()) return "; no batch was in hand";
  const Time now = Clock::now();
  if (taken_.empty())
    return "; batch " + std::to_string(number(ready_.front().id())) + " came and was not taken";
  const auto held = std::chrono::duration<double>(now - taken_.front().at).count();
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.1f", held);
  return "; batch " + std::to_string(number(taken_.front().id)) + " was taken " + seconds +
         " s ago and not given back: was done() forgotten, or is the model slow?";
}

// After a Bye it is as agreed that the connection ends: theirs, or ours when all is done.
void Attachment::lose(const WorkerError& reason) {
  if (ending_ || (leaving_ && ready_.empty() && taken_.empty())) {
    closed_ = true;
  } else {
    lost_ = reason;
  }
  link_.end();
}

// Whether the oldest batch that was received can be taken. Another thread may close the attachment
// meanwhile.
bool Attachment::has_arrived(Lock& lock) {
  if (ready_.empty()) return false;
  if (!device_.reader()) return true;
  const std::uint32_t slab = ready_.front().place().slab;
  lock.unlock();
  bool arrived = false;
  std::optional<WorkerError> failed;
  try {
    arrived = device_.reader()->has_arrived(slab);
  } catch (const DeviceFailure& error) {
    if (!error.passes()) failed.emplace(error.what(), "device");
  }
  lock.lock();
  if (failed) {
    if (const auto error = lose_after_failure(lock, *failed)) throw *error;
  }
  return arrived && !ready_.empty();
}

// Calls of CUDA also fail if the service that made the events was killed. Then the reason is the
// loss of the service: a new attachment can succeed. Returns the reason; nothing if the connection
// ended as agreed.
std::optional<WorkerError> Attachment::lose_after_failure(Lock& lock, const WorkerError& reason) {
  const Time limit = Clock::now() + sockets_closed_after;
  while (!over() && !interruption_.is_set() && Clock::now() < limit) {
    lock.unlock();
    link_.wait(limit, WorkerLink::Until::message, interruption_.descriptor());
    lock.lock();
    read(Clock::now());
  }
  if (over()) return lost_;
  lose(reason);
  return reason;
}

void Attachment::use_on(const WorkerBatch& batch, DeviceStream stream) {
  on_device([&](DeviceReader& reader) { reader.use_on(batch.place().slab, stream); });
}

}  // namespace millrace
