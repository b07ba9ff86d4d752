// SPDX-License-Identifier: Apache-2.0
#include "client/internal/stream_pipe.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "client/client_error.h"

namespace millrace {
namespace {

constexpr std::size_t entry = 64;  // what an event or a command takes at least, of the bounds

std::size_t size_of(const StreamPipe::Said& said) {
  const auto* frames = std::get_if<std::string>(&said);
  return frames ? frames->size() : entry;
}

std::size_t size_of(const ClientEvent& event) {
  if (const auto* result = std::get_if<client_event::Result>(&event))
    return entry + result->answer.data.size();
  if (const auto* rejected = std::get_if<client_event::Rejected>(&event))
    return entry + rejected->message.size();
  if (const auto* warned = std::get_if<client_event::Warned>(&event))
    return entry + warned->message.size();
  return entry;
}

// Whether the condition became true until then.
template <class Condition>
bool wait(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, Time deadline,
          Condition condition) {
  if (deadline == Time::min()) return condition();
  if (deadline != Time::max()) return changed.wait_until(lock, deadline, condition);
  changed.wait(lock, condition);  // the other would overflow
  return true;
}

StreamFailed let_go() { return {"closed", "the stream was closed"}; }

}  // namespace

StreamPipe::StreamPipe(std::uint64_t number, Bounds bounds, Changes& changes,
                       std::function<void()> wake)
    : number_(number), bounds_(bounds), changes_(changes), wake_(std::move(wake)) {}

bool StreamPipe::say(Bytes frames, Time deadline) {
  Lock lock(mutex_);
  if (!await_room(lock, deadline)) return false;
  push(std::string(reinterpret_cast<const char*>(frames.data()), frames.size()));
  return true;
}

bool StreamPipe::say(const ClientMessage& command, Time deadline) {
  const bool end = std::holds_alternative<client_message::End>(command);
  Lock lock(mutex_);
  if (!await_room(lock, deadline)) return false;
  if (end && end_said_) return true;
  push(command);
  end_said_ = end;
  return true;
}

bool StreamPipe::await_room(Lock& lock, Time deadline) {
  const bool possible = wait(room_, lock, deadline, [this] {
    return abandoned_ || ended() || end_said_ || unsent_ < bounds_.unsent;
  });
  if (abandoned_) throw let_go();
  if (failure_) failure_->raise();
  if (closed_ && !end_said_) throw StreamFailed("closed", "the service has ended the stream");
  if (!possible) room_wanted_ = true;
  return possible;
}

void StreamPipe::push(Said said) {
  if (end_said_) throw std::logic_error("nothing follows the end of a stream");
  unsent_ += size_of(said);
  said_.push_back(std::move(said));
  if (said_.size() == 1) wake_();
}

std::optional<ClientEvent> StreamPipe::next(Time deadline) {
  Lock lock(mutex_);
  const bool came =
      wait(came_, lock, deadline, [this] { return abandoned_ || ended() || !events_.empty(); });
  if (abandoned_) throw let_go();
  if (!came) {
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
  if (held_up_) go_on();
  return event;
}

void StreamPipe::go_on() {
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
  untaken_ = 0;
  room_.notify_all();
  came_.notify_all();
  announce(event_wanted_);
  announce(room_wanted_);
  wake_();
}

void StreamPipe::take(std::vector<Said>& into) {
  into.clear();
  const Lock lock(mutex_);
  said_.swap(into);
}

void StreamPipe::sent(const Said& said) {
  const Lock lock(mutex_);
  unsent_ -= size_of(said);
  if (unsent_ >= bounds_.unsent) return;
  room_.notify_all();
  announce(room_wanted_);
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

Time StreamPipe::held_up_since() const {
  const Lock lock(mutex_);
  return held_up_since_;
}

bool StreamPipe::abandoned() const {
  const Lock lock(mutex_);
  return abandoned_;
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
  events_.push_back(std::move(event));
  came_.notify_all();
  announce(event_wanted_);
}

void StreamPipe::announce(bool& wanted) {
  if (std::exchange(wanted, false)) changes_.add(number_);
}

void StreamPipe::end() {
  said_.clear();
  room_.notify_all();
  came_.notify_all();
  announce(event_wanted_);
  announce(room_wanted_);
}

}  // namespace millrace
