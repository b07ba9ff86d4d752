// SPDX-License-Identifier: Apache-2.0
#include "service/commands/stream_client.h"

#include <algorithm>
#include <cmath>
#include <ostream>
#include <utility>

#include "transport/limits.h"

namespace millrace {
namespace {

StreamRequest request_for(const AudioFile& file, const StreamPlan& plan) {
  StreamRequest request = plan.request;
  request.format = "s16le";
  request.rate = file.rate();
  request.channels = file.channels();
  return request;
}

std::size_t frames_of(Duration packet, const AudioFile& file) {
  const auto wanted = std::chrono::duration<double>(packet).count() * file.rate();
  const auto longest = ConnectionLimits().message / (file.channels() * sizeof(std::int16_t));
  return std::clamp<std::size_t>(std::lround(wanted), 1, longest);
}

}  // namespace

FileStream::FileStream(Client& client, const StreamPlan& plan, AudioFile file, std::ostream& out)
    : realtime_(plan.realtime),
      file_(std::move(file)),
      lines_(file_.path()),
      out_(out),
      packet_(frames_of(plan.packet, file_)),
      period_(std::chrono::duration_cast<Duration>(
          std::chrono::duration<double>(static_cast<double>(packet_) / file_.rate()))),
      stream_(client.start(request_for(file_, plan))) {}

std::optional<Time> FileStream::go_on(Time now) {
  if (!print_events()) return std::nullopt;
  return send(now);
}

// False when the stream is over.
bool FileStream::print_events() {
  try {
    while (const auto event = stream_.try_next()) {
      if (std::holds_alternative<client_event::Opened>(*event)) due_ = Clock::now();
      print(lines_.line(*event));
    }
    if (stream_.over() && !sent_) failure_ = "the service ended the stream";
    return !stream_.over();
  } catch (const StreamFailed& failed) {
    print(lines_.line(failed));
    failure_ = failed.what();
  } catch (const ClientError& error) {
    failure_ = error.what();
  }
  return false;
}

std::optional<Time> FileStream::send(Time now) {
  if (sent_ || !due_) return Time::max();
  try {
    return send_packets(now);
  } catch (const ClientError&) {  // which the events tell
    due_.reset();
    return Time::max();
  }
}

// A packet of a microphone is there when its last frame is.
std::optional<Time> FileStream::send_packets(Time now) {
  for (;;) {
    if (waiting_.empty()) {
      const auto packet = file_.read(packet_);
      if (!packet) {
        failure_ = packet.error();
        return std::nullopt;
      }
      if (packet->empty()) break;
      waiting_ = *packet;
      if (realtime_) *due_ += period_;
    }
    if (realtime_ && *due_ > now) return due_;
    if (!stream_.try_send(std::as_bytes(waiting_))) return Time::max();
    waiting_ = {};
  }
  sent_ = stream_.try_send(client_message::End{});
  return Time::max();
}

void FileStream::print(const std::string& line) { out_ << line << std::endl; }

}  // namespace millrace
