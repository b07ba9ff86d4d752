// SPDX-License-Identifier: Apache-2.0
// The messages of an Attachment to the service: those for clients, late answers, Bye, and
// heartbeats.
#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/message_room.h"
#include "workers/library/attachment.h"

namespace millrace {

using namespace worker_protocol;

SlotStreams::Entry& Attachment::entry_of(StreamId stream) {
  if (lost_) throw StreamGone("the service is lost");
  SlotStreams::Entry* const entry = closed_ ? nullptr : streams_.find(stream);
  if (entry) return *entry;
  throw StreamGone("stream " + std::to_string(number(stream)) +
                   " has no slot of this worker: it has ended, moved to another worker, or was "
                   "never here");
}

bool Attachment::send(StreamId stream, const Answer& message, Time deadline) {
  Lock lock(mutex_);
  const std::uint32_t room = room_of(message);
  for (bool fresh = false;;) {
    SlotStreams::Entry& entry = entry_of(stream);
    if (room <= entry.room) {
      entry.room -= room;
      Encoder encoder;  // not the one of done(), which another thread may use
      send_or_throw(lock, encoder.encode(Send{stream, entry.newest, message}));
      return true;
    }
    const Time now = Clock::now();
    if (!reading_ && !std::exchange(fresh, true)) {
      read(now);
      continue;
    }
    if (now >= deadline) return false;
    // Without a call of next_until(), which consumes it, each wait would return at once.
    if (interruption_.is_set() && !taking_) return false;
    wait_for_news(lock, std::min(deadline, silent_at()));
    fresh = false;
  }
}

void Attachment::answer(StreamId stream, std::uint64_t seq, const Answer& answer) {
  Lock lock(mutex_);
  (void)entry_of(stream);
  if (!streams_.answered(stream, seq))
    throw std::invalid_argument(
        "row " + std::to_string(seq) + " of stream " + std::to_string(number(stream)) +
        " is not pending: its answer was sent, or was not `pending`, or its "
        "batch is not given back");
  Encoder encoder;
  send_or_throw(lock, encoder.encode(LateAnswer{stream, seq, answer}));
}

void Attachment::send_or_throw(Lock& lock, Bytes message) {
  try {
    send(lock, message);
  } catch (const WorkerError& error) {
    throw StreamGone(error.what());
  }
  if (has_ended()) throw StreamGone("the connection to the service has ended");
}

// If the send queue is full, Bye is not sent: the service does not read, so it is lost anyway.
void Attachment::send_bye() {
  if (leaving_ || has_ended()) return;
  leaving_ = true;
  Encoder encoder;
  try {
    (void)link_.try_send(encoder.encode(Bye{}));
  } catch (const WorkerError& error) {
    mark_send_failed(error);
  }
}

// Blocks until the socket has accepted all of the message: the thread may not send again for long.
void Attachment::send(Lock& lock, Bytes message) {
  const Time limit = Clock::now() + settings_.heartbeats.silence;
  try {
    for (bool queued = false; !has_ended();) {
      if (link_.has_output()) link_.flush();
      queued = queued || link_.try_send(message);
      if (queued && !link_.has_output()) return;
      if (Clock::now() >= limit)
        throw WorkerError("the service does not read this worker's messages");
      lock.unlock();
      link_.wait(limit, WorkerLink::Until::writable, -1);
      lock.lock();
    }
  } catch (const WorkerError& error) {
    mark_send_failed(error);
  }
  // A trainer learns it from next_until(), after the batches that it has received.
  if (lost_ && !settings_.trainer) throw *lost_;
}

void Attachment::run_heartbeat(const std::stop_token& stop) {
  Encoder encoder;
  const Bytes heartbeat = encoder.encode(Heartbeat{});
  const Duration interval = settings_.heartbeats.interval;
  Lock lock(mutex_);
  while (!has_ended()) {
    const Time due = std::min(link_.last_sent() + interval, Clock::now() + interval / 4);
    stopping_.wait_until(lock, stop, due, [] { return false; });
    if (stop.stop_requested()) return;
    if (!reading_) read(Clock::now());
    if (!has_ended()) send_heartbeat(heartbeat);
  }
}

void Attachment::send_heartbeat(Bytes heartbeat) {
  try {
    link_.flush();
    if (Clock::now() >= link_.last_sent() + settings_.heartbeats.interval)
      (void)link_.try_send(heartbeat);
  } catch (const WorkerError& error) {
    mark_send_failed(error);
  }
}

}  // namespace millrace
