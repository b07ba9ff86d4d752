// SPDX-License-Identifier: Apache-2.0
#include "workers/library/attachment.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <limits>
#include <stdexcept>
#include <utility>
#include <variant>

#include "base/quiet_thread.h"
#include "schemas/worker_protocol.h"
#include "workers/library/connect_service.h"

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

FileDescriptor event() {
  FileDescriptor made(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!made) throw WorkerError(std::string("no descriptor: ") + std::strerror(errno));
  return made;
}

WorkerError refusal(const std::string& what, const Refused& refused,
                    const std::string& in_hand = "") {
  return WorkerError(what + refused.message + " (" + refused.code + ")" + in_hand, refused.code);
}

WorkerLink::Until until(bool output) {
  return output ? WorkerLink::Until::message_or_room : WorkerLink::Until::message;
}

std::size_t bytes_of(std::span<const Answer> answers) {
  std::size_t bytes = 0;
  for (const Answer& answer : answers) bytes += answer.data.size() + 16;
  return bytes;
}

void check_counts(const WorkerBatch& batch, std::span<const Answer> answers,
                  std::span<const Answer> mark_answers) {
  const auto fits = [](std::span<const Answer> given, const std::vector<RowEntry>& rows) {
    return given.empty() || given.size() == rows.size();
  };
  if (!fits(answers, batch.framed()) || !fits(mark_answers, batch.marks()))
    throw std::invalid_argument("a batch takes one answer for each of its rows, or none at all");
  if (bytes_of(answers) + bytes_of(mark_answers) > max_to_service - 4096)
    throw std::invalid_argument("the answers of a batch are too long for a message");
}

}  // namespace

Attachment::Attachment(const std::string& url, const WorkerSettings& settings,
                       const std::function<void()>& meanwhile)
    : settings_(settings),
      device_(settings.device),
      wake_(event()),
      link_(url, meanwhile),
      welcome_(shake_hands(meanwhile)),
      slabs_(welcome_, link_.take_descriptor()) {
  heart_ = quiet_thread("millrace-beat", [this](const std::stop_token& stop) { beat(stop); });
  if (!settings.watch) device_.attach(welcome_, settings.credits, slabs_.shared());
  if (!device_.copies_in_vain()) return;
  Encoder encoder;
  Lock lock(mutex_);
  send(lock, encoder.encode(Unmapped{}));
}

Attachment::~Attachment() = default;

Welcome Attachment::shake_hands(const std::function<void()>& meanwhile) {
  Encoder encoder;
  (void)link_.try_send(encoder.encode(hello_of(settings_, device_)));
  const Time limit = Clock::now() + handshake_limit;
  for (;;) {
    if (link_.has_output()) link_.flush();
    if (const auto message = link_.receive()) {
      if (const auto* refused = std::get_if<Refused>(&*message))
        throw refusal("the service refused this worker: ", *refused);
      const auto* welcome = std::get_if<Welcome>(&*message);
      if (!welcome) throw WorkerError("the service did not answer with a welcome");
      if (welcome->version != version)
        throw WorkerError("the service speaks version " + std::to_string(welcome->version) +
                          " of the worker protocol, this worker " + std::to_string(version));
      return *welcome;
    }
    const Time now = Clock::now();
    if (now >= limit) throw WorkerError("the service did not answer");
    meanwhile();
    link_.wait(std::min(limit, now + meanwhile_interval), until(link_.has_output()), wake_.get());
  }
}

std::optional<WorkerBatch> Attachment::next_until(Time deadline) {
  Lock lock(mutex_);
  unsigned looks = 0;
  for (;;) {
    const Time now = Clock::now();
    read(now);
    if (take_interrupt()) return std::nullopt;
    if (lost_) throw *lost_;
    if (has_arrived(lock)) return take_first(lock);
    if (closed_) ready_.clear();  // what has not arrived never will
    if ((ready_.empty() && ending_) || closed_ || now >= deadline) return std::nullopt;
    const Time look_at = ready_.empty()
                             ? std::min(deadline, link_.heard() + settings_.heartbeats.silence)
                         : looks++ < looks_at_once ? now
                                                   : now + look_period;
    const bool output = link_.has_output();
    waiting_ = true;
    lock.unlock();
    link_.wait(look_at, until(output), wake_.get());
    lock.lock();
    waiting_ = false;
  }
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
  check_counts(batch, answers, mark_answers);
  Lock lock(mutex_);
  if (taken_.empty() || taken_.front().id != batch.id())
    throw std::logic_error("batches are given back once, in the order in which they were taken");
  lock.unlock();
  give_back_on_device(batch);
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

// The descriptor wakes the thread that waits, the flag tells it why. In this order: a descriptor
// that is written after its flag was taken would wake the next wait for ever.
void Attachment::interrupt() noexcept {
  const int error = errno;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
  interrupted_.store(true);
  errno = error;
}

bool Attachment::ended() const {
  const Lock lock(mutex_);
  return lost_ || (ready_.empty() && (ending_ || closed_));
}

std::uint32_t Attachment::company() const {
  const Lock lock(mutex_);
  return company_;
}

bool Attachment::take_interrupt() {
  if (!interrupted_.exchange(false)) return false;
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &count, sizeof count);
  return true;
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
    throw refusal("the service ended the connection: ", *refused, in_hand());
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

}  // namespace millrace
