// SPDX-License-Identifier: Apache-2.0
#include "commands/streaming/stream_client.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "transport/net/limits.h"

namespace millrace {
namespace {

StreamRequest request_for(const StreamPlan& plan, const FilePart& part, const AudioFormat& format,
                          bool averages) {
  StreamRequest request = plan.request;
  request.id = part.id;
  request.format = name_of(format.format);
  request.rate = format.rate;
  request.channels = format.channels;
  if (part.channel) request.channel = std::to_string(*part.channel);
  if (averages) request.channel = "mean";
  return request;
}

std::size_t frames_of(Duration packet, const AudioFormat& format) {
  const auto wanted = std::chrono::duration<double>(packet).count() * format.rate;
  const auto frame = std::max<std::size_t>(1, format.frame_bytes());
  const auto longest = std::max<std::size_t>(1, ConnectionLimits().message / frame);
  return std::clamp<std::size_t>(std::lround(wanted), 1, longest);
}

std::string name_of(const FilePart& part) {
  std::string name = part.path == "-" ? "standard input" : part.path;
  if (part.channel) name += ", channel " + std::to_string(*part.channel);
  return name;
}

std::string described(const AudioFormat& format) {
  return std::to_string(std::lround(format.rate)) + " Hz, " + std::to_string(format.channels) +
         (format.channels == 1 ? " channel, " : " channels, ") +
         std::string(name_of(format.format));
}

// True for the parameters that the source determines.
bool is_of_source(const std::string& parameter) {
  return parameter == "format" || parameter == "rate" || parameter == "channels" ||
         parameter == "channel";
}

}  // namespace

void print_problem(StreamOutput& output, const FilePart& part, std::string_view what) {
  output.print_problem("millrace stream: " + name_of(part) + ": " + std::string(what));
}

FileStream::FileStream(Client& client, const StreamPlan& plan, const FilePart& part,
                       std::unique_ptr<AudioSource> source, StreamOutput& output)
    : client_(client),
      realtime_(plan.realtime),
      part_(part),
      source_(std::move(source)),
      averages_(source_->format().channels > 1 && !part.channel && !plan.request.channel),
      request_(request_for(plan, part, source_->format(), averages_)),
      lines_(part.path, part.channel),
      name_(name_of({std::filesystem::path(part.path).filename().string(), part.channel})),
      output_(output),
      packet_(frames_of(plan.packet, source_->format())),
      period_(std::chrono::duration_cast<Duration>(
          std::chrono::duration<double>(static_cast<double>(packet_) / source_->format().rate))),
      stream_(client.start(request_)) {}

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
        print_problem(output_, part_, "warning: " + warned->message);
      if (const auto* resumed = std::get_if<client_event::Resumed>(&*event))
        print_problem(output_, part_,
                      resumed->kept ? "notice: the connection was lost; the stream continues"
                                    : "notice: the connection was lost; the stream was opened "
                                      "anew, and the model has lost its state");
      if (!print(output_.print(*event, source(), lines_.line(*event)))) return false;
    }
    if (stream_.over() && !sent_) failure_ = "the service ended the stream";
    return !stream_.over();
  } catch (const StreamFailed& failed) {
    failure_ = failed.what();
    (void)print(output_.print_end(source(), lines_.line(failed)));
  } catch (const StreamRefused& refused) {
    if (averages_ && refused.parameter() == "channel") {
      open_with_all_channels();
      return print_events();
    }
    failure_ = refusal(refused);
  } catch (const ClientError& error) {
    failure_ = error.what();
  }
  return false;
}

void FileStream::open_with_all_channels() {
  averages_ = false;
  request_.channel.reset();
  stream_ = client_.start(request_);
}

// The error message of a refusal. If the audio is the reason, the message has its format.
std::string FileStream::refusal(const StreamRefused& refused) const {
  if (!is_of_source(refused.parameter())) return refused.what();
  return "has " + described(source_->format()) + ", " + refused.what();
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
      if ((*packet)->empty()) {
        report_length();
        break;
      }
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

void FileStream::report_length() {
  if (const std::string why = source_->length_notice();
      !why.empty() && !std::exchange(noticed_, true))
    print_problem(output_, part_, "notice: " + why);
}

bool FileStream::print(bool written) {
  if (!written) failure_ = "the results cannot be written";
  return written;
}

}  // namespace millrace
