// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "client/client.h"
#include "service/audio_file.h"
#include "service/commands/event_lines.h"

namespace millrace {

// How files are streamed.
struct StreamPlan {
  StreamRequest request;  // but for what the file decides: format, rate, channels
  Duration packet = std::chrono::milliseconds(100);  // of audio in a message
  bool realtime = false;  // as a microphone would; else as fast as the service takes it
};

// One audio file on its way: opens a stream, sends, ends, and prints each event on `out` as it
// comes. Waits for nothing. Confined to one thread; `plan` and `out` outlive it.
class FileStream {
 public:
  FileStream(Client& client, const StreamPlan& plan, AudioFile file, std::ostream& out);

  // Does what can be done now, and says when to be called again at the latest: besides then,
  // whenever the stream has changed. Nothing: it is over.
  std::optional<Time> go_on(Time now);

  std::uint64_t number() const { return stream_.number(); }
  // After it is over: why not well, or nothing.
  const std::string& failure() const { return failure_; }

 private:
  std::optional<Time> send(Time now);
  std::optional<Time> send_packets(Time now);
  bool print_events();
  void print(const std::string& line);

  const bool realtime_;
  AudioFile file_;
  EventLines lines_;
  std::ostream& out_;
  std::size_t packet_;  // frames
  Duration period_;     // of a packet
  ClientStream stream_;
  std::span<const std::int16_t> waiting_;  // of the file, read and not sent
  std::optional<Time> due_;                // when the packet that waits may be sent
  bool sent_ = false;                      // everything, and the end
  std::string failure_;
};

}  // namespace millrace
