// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "client/client.h"
#include "client/lines/event_lines.h"
#include "commands/input/audio_source.h"
#include "commands/streaming/stream_output.h"

namespace millrace {

// Options for all streams of the command.
struct StreamPlan {
  StreamRequest request;           // without what a part and its source determine
  std::optional<AudioFormat> raw;  // the format of the files if they are raw audio
  Duration packet = std::chrono::milliseconds(100);  // length of audio per message
  bool opus = false;                                 // encodes the audio; `packet` is 20 ms then
  bool realtime = false;  // sends like a microphone; else as fast as the service accepts it
  StreamOutput::Look look{};
};

// The audio of one stream: a file, or one channel of a file.
struct FilePart {
  std::string path;
  std::optional<std::uint32_t> channel{};
  std::string id{};  // name of the stream; empty: the service generates one
};

// Prints an error, a warning or a notice about a file.
void print_problem(StreamOutput& output, const FilePart& part, std::string_view what);

// Streams one source of audio: opens a stream, sends the audio, and ends the stream. Prints each
// event when it arrives, and a warning also on standard error.
//
// If the plan selects no channel of several, the service averages them. A pipeline of several
// channels refuses that. Then the stream is opened once more, with all channels.
//
// Never blocks. Confined to one thread. `client` and `output` must outlive it.
class FileStream {
 public:
  FileStream(Client& client, const StreamPlan& plan, const FilePart& part,
             std::unique_ptr<AudioSource> source, StreamOutput& output);

  // Sends and receives without waiting. Returns the time of the next call; call it earlier if the
  // stream has changed or awaited_descriptor() is readable. Returns nullopt if the stream is over.
  std::optional<Time> advance(Time now);

  // The descriptor of input that advance() waits for; -1 if it waits for none.
  int awaited_descriptor() const { return awaits_input_ ? source_->descriptor() : -1; }

  // The number of the client's stream. advance() may change it.
  std::uint64_t number() const { return stream_.number(); }
  // True if the stream is open and the service averages the channels without being asked to.
  bool averages() const { return averages_ && due_; }
  // When the stream is over: why it failed; empty if it did not.
  const std::string& failure() const { return failure_; }

 private:
  std::optional<Time> send(Time now);
  std::optional<Time> send_packets(Time now);
  bool print_events();
  void report_length();
  bool print(bool written);
  StreamOutput::Source source() const { return {number(), name_}; }
  void open_with_all_channels();
  std::string refusal(const StreamRefused& refused) const;

  Client& client_;
  const bool realtime_;
  const FilePart part_;
  std::unique_ptr<AudioSource> source_;
  bool averages_;  // the request has channel=mean, because the plan has no channel
  StreamRequest request_;
  EventLines lines_;
  const std::string name_;  // the file without its folder, and the channel
  StreamOutput& output_;
  std::size_t packet_;  // frames
  Duration period_;     // length of a packet
  ClientStream stream_;
  Bytes waiting_;              // packet that was read from the source and not sent
  std::optional<Time> due_;    // earliest time to send this packet; nullopt: the stream is not open
  bool awaits_input_ = false;  // the source has no frames yet
  bool sent_ = false;          // all frames and the end
  bool noticed_ = false;       // the notice about the length was printed
  std::string failure_;
};

}  // namespace millrace
