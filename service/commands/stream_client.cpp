// SPDX-License-Identifier: Apache-2.0
#include "service/commands/stream_client.h"

#include <algorithm>
#include <cmath>
#include <ostream>
#include <utility>

#include "transport/net/limits.h"

namespace millrace {
namespace {

StreamRequest request_for(const AudioSource& source, const StreamPlan& plan) {
  StreamRequest request = plan.request;
  request.format = source.format().name;
  request.rate = source.format().rate;
  request.channels = source.format().channels;
  return request;
}

std::size_t frames_of(Duration packet, const PcmFormat& format) {
  const auto wanted = std::chrono::duration<double>(packet).count() * format.rate;
  const auto longest = std::max<std::size_t>(1, ConnectionLimits().message / format.frame_bytes());
  return std::clamp<std::size_t>(std::lround(wanted), 1, longest);
}

std::string described(const PcmFormat& format) {
  return std::to_string(std::lround(format.rate)) + " Hz, " + std::to_string(format.channels) +
         (format.channels == 1 ? " channel, " : " channels, ") + std::string(format.name);
}

// The number in the refusal that the pipeline accepts for `parameter`; `own` if it has none.
std::string accepted_value(const StreamRefused& refused, std::string_view parameter,
                           std::string own) {
  constexpr std::string_view says = "takes ";
  const std::string_view what = refused.what();
  const auto at = what.find(says);
  if (refused.parameter() != parameter || at == what.npos) return own;
  const std::string_view rest = what.substr(at + says.size());
  const std::string_view number = rest.substr(0, rest.find_first_not_of("0123456789"));
  return number.empty() ? own : std::string(number);
}

}  // namespace

void print_problem(Console& console, const std::string& file, std::string_view what) {
  console.err << "millrace stream: " << (file == "-" ? "standard input" : file) << ": " << what
              << std::endl;
}

FileStream::FileStream(Client& client, const StreamPlan& plan, const std::string& name,
                       std::unique_ptr<AudioSource> source, Console& console)
    : realtime_(plan.realtime),
      name_(name),
      source_(std::move(source)),
      lines_(name),
      console_(console),
      packet_(frames_of(plan.packet, source_->format())),
      period_(std::chrono::duration_cast<Duration>(
          std::chrono::duration<double>(static_cast<double>(packet_) / source_->format().rate))),
      stream_(client.start(request_for(*source_, plan))) {}

std::optional<Time> FileStream::advance(Time now) {
  if (!print_events()) return std::nullopt;
  return send(now);
}

// Returns false if the stream is over.
bool FileStream::print_events() {
  try {
    while (const auto event = stream_.try_next()) {
      if (std::holds_alternative<client_event::Opened>(*event)) due_ = Clock::now();
      if (const auto* warned = std::get_if<client_event::Warned>(&*event))
        print_problem(console_, name_, "warning: " + warned->message);
      if (!print(lines_.line(*event))) return false;
    }
    if (stream_.over() && !sent_) failure_ = "the service ended the stream";
    return !stream_.over();
  } catch (const StreamFailed& failed) {
    failure_ = failed.what();
    (void)print(lines_.line(failed));
  } catch (const StreamRefused& refused) {
    failure_ = refusal(refused);
  } catch (const ClientError& error) {
    failure_ = error.what();
  }
  return false;
}

// The error message of a refusal. If the format is the reason, it has the format of the source and
// the command that converts it.
std::string FileStream::refusal(const StreamRefused& refused) const {
  const std::string& parameter = refused.parameter();
  if (parameter != "rate" && parameter != "channels") return refused.what();
  const PcmFormat& has = source_->format();
  const std::string input = name_ == "-" ? "INPUT" : name_;
  return "has " + described(has) + ", " + refused.what() + "; convert it: ffmpeg -i " + input +
         " -ar " + accepted_value(refused, "rate", std::to_string(std::lround(has.rate))) +
         " -ac " + accepted_value(refused, "channels", std::to_string(has.channels)) +
         " -f wav - | millrace stream -";
}

std::optional<Time> FileStream::send(Time now) {
  awaits_input_ = false;
  if (sent_ || !due_) return Time::max();
  try {
    return send_packets(now);
  } catch (const ClientError&) {  // print_events() reports it
    due_.reset();
    return Time::max();
  }
}

// In real time, a packet is due when a microphone would have recorded its last frame.
std::optional<Time> FileStream::send_packets(Time now) {
  for (;;) {
    if (waiting_.empty()) {
      const auto packet = source_->read(packet_);
      if (!packet) {
        failure_ = packet.error();
        return std::nullopt;
      }
      awaits_input_ = !*packet;
      if (awaits_input_) return Time::max();
      if ((*packet)->empty()) break;
      waiting_ = **packet;
      if (realtime_) *due_ += period_;
    }
    if (realtime_ && *due_ > now) return due_;
    if (!stream_.try_send(waiting_)) return Time::max();
    waiting_ = {};
  }
  sent_ = stream_.try_send(client_message::End{});
  return Time::max();
}

// Returns false if the output cannot be written.
bool FileStream::print(const std::string& line) {
  if (console_.out << line << std::endl) return true;
  failure_ = "the results cannot be written";
  return false;
}

}  // namespace millrace
