// SPDX-License-Identifier: Apache-2.0
#include "client/internal/stream_pipe.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "client/client_error.h"
#include "client/internal/limits.h"

namespace millrace {
namespace {

std::size_t size_of(const ClientEvent& event) {
  if (const auto* result = std::get_if<client_event::Result>(&event))
    return min_entry_bytes + result->answer.data.size();
  if (const auto* message = std::get_if<client_event::Message>(&event))
    return min_entry_bytes + message->message.data.size();
  if (const auto* rejected = std::get_if<client_event::Rejected>(&event))
    return min_entry_bytes + rejected->message.size();
  if (const auto* warned = std::get_if<client_event::Warned>(&event))
    return min_entry_bytes + warned->message.size();
  return min_entry_bytes;
}

bool is_message(const ClientEvent& event) {
  return std::holds_alternative<client_event::Message>(event);
}

// Waits for the condition, until `deadline`. Returns whether it is true.
template <class Condition>
bool wait(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, Time deadline,
          Condition condition) {
  if (deadline == Time::min()) return condition();
  if (deadline != Time::max()) return changed.wait_until(lock, deadline, condition);
  changed.wait(lock, condition);  // wait_until() would overflow
  return true;
}

StreamFailed closed_error() { return {"closed", "the stream was closed"}; }

}  // namespace

StreamPipe::StreamPipe(std::uint64_t number, Bounds bounds, Changes& changes,
                       std::function<void()> wake, Input input)
    : number_(number), bounds_(bounds), input_(input), changes_(changes), wake_(std::move(wake)) {}

bool StreamPipe::queue(Bytes frames, Time deadline) {
  if (has_packets() && (frames.empty() || frames.size() > longest_packet))
    throw std::invalid_argument("an Opus packet must have 1 to " + std::to_string(longest_packet) +
                                " bytes, not " + std::to_string(frames.size()));
  Lock lock(mutex_);
  if (!await_space(lock, deadline)) return false;
  push(std::string(text_in(frames)));
  return true;
}

bool StreamPipe::queue(const ClientMessage& command, Time deadline) {
  const bool end = std::holds_alternative<client_message::End>(command);
  Lock lock(mutex_);
  if (!await_space(lock, deadline)) return false;
  if (end && end_queued_) return true;
  push(command);
  end_queued_ = end;
  return true;
}

bool StreamPipe::await_space(Lock& lock, Time deadline) {
  const bool available = wait(space_available_, lock, deadline, [this] {
    return abandoned_ || ended() || end_queued_ || unsent_ < bounds_.unsent;
  });
  if (abandoned_) throw closed_error();
  if (failure_) failure_->raise();
  if (closed_ && !end_queued_) throw StreamFailed("closed", "the service has ended the stream");
  if (!available) space_wanted_ = true;
  return available;
}

void StreamPipe::push(Queued queued) {
  if (end_queued_) throw std::logic_error("nothing can be sent after the end of a stream");
  unsent_ += size_of(queued);
  queued_.push_back(std::move(queued));
  if (queued_.size() == 1) wake_();
}

std::optional<ClientEvent> StreamPipe::next(Time deadline) {
  Lock lock(mutex_);
  const bool available = wait(event_available_, lock, deadline,
                              [this] { return abandoned_ || ended() || !events_.empty(); });
  if (abandoned_) throw closed_error();
  if (!available) {
    event_wanted_ = true;
    return std::nullopt;
  }
  if (events_.empty()) {
    if (failure_) failure_->raise();
    return std::nullopt;
  }
  ClientEvent event = std::move(events_.front());
  events_.pop_front();
  untaken_ -= size_of(event);
  if (is_message(event)) untaken_messages_ -= size_of(event);
  if (held_up_) resume_if_drained();
  return event;
}

void StreamPipe::resume_if_drained() {
  held_up_since_ = Clock::now();
  if (ended() || untaken_ > bounds_.untaken / 2) return;
  held_up_ = false;
  wake_();
}

bool StreamPipe::over() const {
  const Lock lock(mutex_);
  return closed_ && !abandoned_ && events_.empty();
}

std::string StreamPipe::name() const {
  const Lock lock(mutex_);
  return name_;
}

void StreamPipe::abandon() {
  const Lock lock(mutex_);
  if (abandoned_ || ended()) return;
  abandoned_ = true;
  events_.clear();
  untaken_ = untaken_messages_ = 0;
  space_available_.notify_all();
  event_available_.notify_all();
  announce(event_wanted_);
  announce(space_wanted_);
  wake_();
}

void StreamPipe::take(std::vector<Queued>& into) {
  into.clear();
  const Lock lock(mutex_);
  queued_.swap(into);
}

void StreamPipe::sent(const Queued& queued) {
  const Lock lock(mutex_);
  unsent_ -= size_of(queued);
  if (unsent_ >= bounds_.unsent) return;
  space_available_.notify_all();
  announce(space_wanted_);
}

void StreamPipe::deliver(ClientEvent event) {
  const Lock lock(mutex_);
  if (ended() || abandoned_) return;
  if (const auto* opened = std::get_if<client_event::Opened>(&event)) name_ = opened->stream;
  add(std::move(event));
}

bool StreamPipe::held_up() {
  const Lock lock(mutex_);
  if (ended() || abandoned_) return held_up_ = false;
  if (!held_up_ && untaken_ >= bounds_.untaken) {
    held_up_ = true;
    held_up_since_ = Clock::now();
  }
  return held_up_;
}

bool StreamPipe::overflows() const {
  const Lock lock(mutex_);
  return untaken_messages_ >= 4 * bounds_.untaken;
}

Time StreamPipe::held_up_since() const {
  const Lock lock(mutex_);
  return held_up_since_;
}

bool StreamPipe::abandoned() const {
  const Lock lock(mutex_);
  return abandoned_;
}

bool StreamPipe::has_ended() const {
  const Lock lock(mutex_);
  return ended();
}

void StreamPipe::close(client_event::Closed closed) {
  const Lock lock(mutex_);
  if (ended()) return;
  closed_ = true;
  if (!abandoned_) add(closed);
  end();
}

void StreamPipe::fail(StreamFailure why) {
  const Lock lock(mutex_);
  if (ended()) return;
  failure_ = std::move(why);
  end();
}

void StreamPipe::add(ClientEvent event) {
  const std::size_t size = size_of(event);
  untaken_ += size;
  if (is_message(event)) untaken_messages_ += size;
  events_.push_back(std::move(event));
  event_available_.notify_all();
  announce(event_wanted_);
}

void StreamPipe::announce(bool& wanted) {
  if (std::exchange(wanted, false)) changes_.add(number_);
}

void StreamPipe::end() {
  queued_.clear();
  space_available_.notify_all();
  event_available_.notify_all();
  announce(event_wanted_);
  announce(space_wanted_);
}

}  // namespace millrace
