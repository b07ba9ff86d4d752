// SPDX-License-Identifier: Apache-2.0
#include "replay/client_replay.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "replay/client_messages.h"

namespace millrace {
namespace {

using Kind = Event::Kind;

constexpr std::size_t longest_message = 32 << 10;
// From the last message to the end of a connection without `end`: an ended connection may lose the
// messages that the service has not read.
constexpr auto reading_time = std::chrono::milliseconds(500);

std::size_t message_bytes(const FrameType& type) {
  const std::size_t frame = client_frame_bytes(type);
  return std::max<std::size_t>(1, longest_message / frame) * frame;
}

}  // namespace

ClientReplay::ClientReplay(Client& client, recording::JoinedReader& items,
                           const recording::StreamMeta& meta, const Pace& pace,
                           AnswerComparison* comparison, ReplayOutput& output)
    : items_(items),
      meta_(meta),
      pace_(pace),
      comparison_(comparison),
      output_(output),
      lines_(meta.number, meta.name),
      message_bytes_(message_bytes(meta.frames)),
      stream_(client.start(request_of(meta, read() ? event_->event : Event{}))) {}

std::optional<Time> ClientReplay::advance(Time now) {
  if (!receive()) return std::nullopt;
  return send(now);
}

// Returns false if the stream is over.
bool ClientReplay::receive() {
  try {
    while (const auto event = stream_.try_next()) on_event(*event);
    if (!stream_.over()) return true;
    if (!sent_) failure_ = "the service ended the stream";
  } catch (const StreamFailed& failed) {
    failure_ = failed.what();
    if (!output_.compares()) output_.print(lines_.line(failed));
  } catch (const StreamRefused& refusal) {
    refused(refusal);
  } catch (const ClientError& error) {
    failure_ = error.what();
    connection_lost_ = true;
  }
  return false;
}

void ClientReplay::on_event(const ClientEvent& event) {
  if (std::holds_alternative<client_event::Opened>(event)) {
    opened_ = true;
    pace_.begun = Clock::now();
    due_ = pace_.speed > 0 && event_ ? pace_.due(event_->at) : Time::min();
  }
  const auto* rejected = std::get_if<client_event::Rejected>(&event);
  if (rejected && failure_.empty()) failure_ = "the service rejected a part: " + rejected->message;
  if (!output_.compares()) output_.print(lines_.line(event));
  const auto* result = std::get_if<client_event::Result>(&event);
  if (!result || !comparison_) return;
  Row row;
  row.seq = open_.rows + result->seq;
  row.begin = open_.count + result->begin;
  row.size = static_cast<std::uint32_t>(result->end - result->begin);
  row.flags = result->flags;
  comparison_->replayed(row, result->answer);
}

void ClientReplay::refused(const StreamRefused& refusal) {
  failure_ = refusal.what();
  if (refusal.retry_after()) retry_after_ = *refusal.retry_after();
}

std::optional<Time> ClientReplay::send(Time now) {
  if (!opened_ || sent_) return Time::max();
  try {
    return send_events(now);
  } catch (const ClientError&) {  // the next call of receive() reports it
    sent_ = true;
    return Time::max();
  }
}

std::optional<Time> ClientReplay::send_events(Time now) {
  while (read()) {
    if (due_ > now) return send_buffer() ? due_ : Time::max();
    if (event_->event.kind == Kind::frames) {
      if (buffer_.size() >= message_bytes_ && !send_buffer()) return Time::max();
      take_frames();
      continue;
    }
    if (!send_buffer()) return Time::max();
    if (event_->event.kind == Kind::abort) return disconnect(now) ? std::nullopt : cut_;
    if (const auto command = command_of(*event_)) {
      if (!stream_.try_send(*command)) return Time::max();
      sent_ = event_->event.kind == Kind::end;
    }
    event_.reset();
    if (sent_) return Time::max();
  }
  // The stream is still being recorded.
  return send_buffer() ? (disconnect(now) ? std::nullopt : cut_) : Time::max();
}

void ClientReplay::finish() {
  if (!comparison_) return;
  if (!sent_ || !failure_.empty()) comparison_->cut();
  event_.reset();
  while (read()) event_.reset();
  comparison_->replayed_all();
}

// Moves frames of the event to the buffer, up to one message.
void ClientReplay::take_frames() {
  const std::size_t frame = meta_.frames.bytes();
  const std::size_t room =
      (message_bytes_ - buffer_.size()) / client_frame_bytes(meta_.frames) * frame;
  const std::size_t taken = std::min(room, event_->frames.size());
  append_for_client(event_->frames.first(taken), meta_.frames, buffer_);
  frames_ += taken / frame;
  event_->frames = event_->frames.subspan(taken);
  if (event_->frames.empty()) event_.reset();
}

bool ClientReplay::send_buffer() {
  if (buffer_.empty()) return true;
  if (!stream_.try_send(buffer_)) return false;
  buffer_.clear();
  return true;
}

// True once the connection may be ended. The client has a limit of 1 unsent byte: an empty message
// is accepted when all frames are sent.
bool ClientReplay::disconnect(Time now) {
  if (!cut_) {
    if (!stream_.try_send(Bytes())) {
      cut_ = Time::max();
      return false;
    }
    cut_ = now + reading_time;
  }
  if (*cut_ == Time::max() && stream_.try_send(Bytes())) cut_ = now + reading_time;
  return *cut_ <= now;
}

// Reads up to the next event. False: there are no more.
bool ClientReplay::read() {
  while (!event_) {
    if (items_over_) return false;
    auto item = items_.next();
    // Answers may be missing where no event is.
    const std::size_t missing = items_.missing_count();
    if (missing > missing_parts_ && comparison_) comparison_->cut();
    missing_parts_ = missing;
    if (!item) {
      items_over_ = true;
      if (comparison_) comparison_->recorded_all();
      return false;
    }
    if (const auto* answer = std::get_if<recording::RecordedAnswer>(&*item)) {
      if (comparison_) comparison_->recorded(*answer);
    } else if (auto* event = std::get_if<recording::RecordedEvent>(&*item)) {
      const bool opens = event->event.kind == Kind::open;
      if ((event->event.cause == Cause::recorder || (opens && opened_part_)) && comparison_)
        comparison_->cut();
      if (opens && !std::exchange(opened_part_, true)) open_ = event->event;
      if (!unbroken_.take(*event, items_) || event->event.kind == Kind::open) continue;
      event_ = *event;
      if (pace_.speed > 0) due_ = std::max(due_, pace_.due(event->at));
    }
  }
  return true;
}

}  // namespace millrace
