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
#include "service/commands/console.h"
#include "service/commands/input/audio_source.h"
#include "service/commands/output/event_lines.h"

namespace millrace {

// How files are streamed.
struct StreamPlan {
  StreamRequest request;         // but for what the source decides: format, rate, channels
  std::optional<PcmFormat> raw;  // of the files, if they are raw PCM
  Duration packet = std::chrono::milliseconds(100);  // of audio in a message
  bool realtime = false;  // as a microphone would; else as fast as the service takes it
};

// Writes a line about the file `name` on standard error.
void complain(Console& console, const std::string& name, std::string_view what);

// One source of audio on its way: opens a stream, sends, ends, and prints each event on
// `console.out` as it comes, and a warning on `console.err` too. Waits for nothing. Confined to one
// thread; `plan` and `console` outlive it.
class FileStream {
 public:
  FileStream(Client& client, const StreamPlan& plan, const std::string& name,
             std::unique_ptr<AudioSource> source, Console& console);

  // Does what can be done now, and says when to be called again at the latest: besides then,
  // whenever the stream has changed. Nothing: it is over.
  std::optional<Time> go_on(Time now);

  // Readable when go_on() can do more, besides; -1 while there is no such descriptor.
  int awaits() const { return awaits_input_ ? source_->descriptor() : -1; }

  std::uint64_t number() const { return stream_.number(); }
  // After it is over: why not well, or nothing.
  const std::string& failure() const { return failure_; }

 private:
  std::optional<Time> send(Time now);
  std::optional<Time> send_packets(Time now);
  bool print_events();
  bool print(const std::string& line);
  std::string refusal(const StreamRefused& refused) const;

  const bool realtime_;
  const std::string name_;
  std::unique_ptr<AudioSource> source_;
  EventLines lines_;
  Console& console_;
  std::size_t packet_;  // frames
  Duration period_;     // of a packet
  ClientStream stream_;
  Bytes waiting_;              // of the source, read and not sent
  std::optional<Time> due_;    // when the packet that waits may be sent
  bool awaits_input_ = false;  // nothing more has come yet
  bool sent_ = false;          // everything, and the end
  std::string failure_;
};

}  // namespace millrace
