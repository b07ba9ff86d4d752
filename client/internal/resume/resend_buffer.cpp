// SPDX-License-Identifier: Apache-2.0
#include "client/internal/resume/resend_buffer.h"

#include <algorithm>
#include <limits>
#include <variant>

#include "schemas/json_text.h"
#include "schemas/stream_request.h"

namespace millrace {
namespace {

template <class Command>
const Command* command_in(const QueuedInput& queued) {
  const auto* command = std::get_if<ClientMessage>(&queued);
  return command ? std::get_if<Command>(command) : nullptr;
}

bool is_counted(const QueuedInput& queued) {
  return std::holds_alternative<ClientMessage>(queued) &&
         !command_in<client_message::Keepalive>(queued);
}

std::size_t command_bytes(const QueuedInput& queued) {
  return std::holds_alternative<ClientMessage>(queued) ? size_of(queued) : 0;
}

}  // namespace

void ResendBuffer::keep(const Kept& kept) {
  keeps_ = true;
  frame_bytes_ = packets_ ? 1 : std::max<std::uint64_t>(1, kept.frame_bytes);
  most_units_ = kept.most > std::numeric_limits<std::uint64_t>::max() / frame_bytes_
                    ? std::numeric_limits<std::uint64_t>::max()
                    : kept.most * frame_bytes_;
  end_.frame = sent_frames_ = received_frames_ = point_.frames = kept.frames;
}

void ResendBuffer::add(QueuedInput queued) {
  Entry entry = end_;
  if (const auto* frames = std::get_if<std::string>(&queued)) {
    const std::uint64_t units = end_.offset + units_of(*frames);
    end_.frame += units / frame_bytes_;
    end_.offset = units % frame_bytes_;
    end_.units += units_of(*frames);
  } else if (const auto* gap = command_in<client_message::Gap>(queued)) {
    end_.frame += gap->frames;
    end_.offset = 0;  // the service drops half a frame before a gap
  } else if (const auto* set = command_in<client_message::Set>(queued); set && keeps_) {
    changes_.emplace_back(end_.command, set->options);
  }
  ended_ = command_in<client_message::End>(queued) != nullptr;
  if (is_counted(queued)) ++end_.command;
  entry.queued = std::move(queued);
  entries_.push_back(std::move(entry));
}

std::optional<ResendBuffer::Next> ResendBuffer::next() {
  if (!keeps_) {
    entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(cursor_));
    cursor_ = 0;
  }
  for (; cursor_ < entries_.size(); ++cursor_, done_ = 0) {
    const Entry& entry = entries_[cursor_];
    if (const auto* command = std::get_if<ClientMessage>(&entry.queued)) {
      if (entry.was_sent && entry.command < received_commands_) continue;
      return Next{.frames = {}, .command = command};
    }
    const std::string_view frames = std::get<std::string>(entry.queued);
    done_ = std::max(done_, units_before(entry, received_frames_));
    forget();  // after a new connection, acknowledgements come before the cursor has moved
    next_ = std::min(units_of(std::get<std::string>(entry.queued)) - done_, free_units());
    if (done_ == units_of(std::get<std::string>(entry.queued))) continue;
    if (next_ == 0) return std::nullopt;
    if (packets_) return Next{.frames = frames};
    next_ = std::min<std::uint64_t>(next_, longest_frames);
    return Next{.frames = frames.substr(done_, next_)};
  }
  return std::nullopt;
}

const QueuedInput* ResendBuffer::sent(std::size_t bytes) {
  next_ = bytes;
  return sent();
}

const QueuedInput* ResendBuffer::sent() {
  Entry& entry = entries_[cursor_];
  if (const auto* frames = std::get_if<std::string>(&entry.queued)) {
    done_ += next_;
    const std::uint64_t whole = entry.frame + (entry.offset + done_) / frame_bytes_;
    sent_frames_ = std::max(sent_frames_, whole);
    if (done_ < units_of(*frames)) return nullptr;
  } else {
    if (const auto* gap = command_in<client_message::Gap>(entry.queued))
      sent_frames_ = std::max(sent_frames_, entry.frame + gap->frames);
    if (is_counted(entry.queued)) sent_commands_ = std::max(sent_commands_, entry.command + 1);
  }
  ++cursor_;
  done_ = 0;
  if (std::exchange(entry.was_sent, true)) return nullptr;
  command_bytes_ += command_bytes(entry.queued);
  if (command_bytes_ > most_command_bytes) keeps_ = false;
  return &entry.queued;
}

bool ResendBuffer::acknowledge(const ResumePoint& point) {
  if (point.frames > sent_frames_ || point.commands > sent_commands_) return false;
  if (point.seq < point_.seq || point.frames < point_.frames || point.commands < point_.commands)
    return true;
  point_ = point;
  for (; !changes_.empty() && changes_.front().first < point.commands; changes_.pop_front()) {
    // The service has rejected a change that would have made the options too long.
    std::string merged = merged_members(options_, {changes_.front().second});
    if (merged_members(first_options_, {merged}).size() <= longest_options)
      options_ = std::move(merged);
  }
  forget();
  return true;
}

// The entry at the cursor may be on its way to the socket.
void ResendBuffer::forget() {
  for (; cursor_ > 0 && is_before(entries_.front(), point_); --cursor_) {
    command_bytes_ -= command_bytes(entries_.front().queued);
    entries_.pop_front();
  }
}

bool ResendBuffer::resume(std::uint64_t frames, std::uint64_t commands) {
  if (frames < point_.frames || frames > sent_frames_) return false;
  if (commands < point_.commands || commands > sent_commands_) return false;
  received_frames_ = frames;
  received_commands_ = commands;
  cursor_ = 0;
  done_ = 0;
  // Half a frame before the end was dropped there.
  if (ended_ && !entries_.empty() && entries_.back().command < commands) cursor_ = entries_.size();
  return true;
}

// The units of an entry that belong to frames before `frame`.
std::uint64_t ResendBuffer::units_before(const Entry& entry, std::uint64_t frame) const {
  const auto* frames = std::get_if<std::string>(&entry.queued);
  if (!frames || frame <= entry.frame) return 0;
  const std::uint64_t units = units_of(*frames), count = frame - entry.frame;
  if (count > (entry.offset + units) / frame_bytes_) return units;
  return count * frame_bytes_ - entry.offset;
}

bool ResendBuffer::is_before(const Entry& entry, const ResumePoint& point) const {
  const auto* frames = std::get_if<std::string>(&entry.queued);
  if (frames) return units_before(entry, point.frames) == units_of(*frames);
  return !is_counted(entry.queued) || entry.command < point.commands;
}

// The units that may be sent now. Gaps take no memory, so they do not count.
std::uint64_t ResendBuffer::free_units() const {
  if (!keeps_) return std::numeric_limits<std::uint64_t>::max();
  const Entry& first = entries_.front();
  const std::uint64_t forgotten = first.units + units_before(first, point_.frames);
  const std::uint64_t kept =
      entries_[cursor_].units + done_ - std::min(forgotten, entries_[cursor_].units + done_);
  return most_units_ - std::min(most_units_, kept);
}

}  // namespace millrace
