// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/answer.h"
#include "client/client_error.h"
#include "client/client_event.h"

namespace millrace {

// Appends the member "data" with the answer's JSON or text, "bytes" in base64, or "error".
void append_answer(std::string& line, const Answer& answer);

// Writes the messages of a service about one file's stream as JSON lines: the messages of
// docs/protocol.md, preceded by the file, its channel if only one is streamed, and the stream's
// name. An answer of kind `bytes` has "bytes", in base64, instead of "data". Confined to one
// thread.
class EventLines {
 public:
  explicit EventLines(std::string_view file, std::optional<std::uint32_t> channel = {});
  // For a recorded stream: its number takes the place of the file.
  EventLines(std::uint64_t number, std::string_view name);

  // The line without a newline. Valid until the next call.
  const std::string& line(const ClientEvent& event);
  const std::string& line(const StreamFailed& failed);

 private:
  void begin(std::string_view type);
  void append(std::string_view name, std::string_view text);
  void append(std::string_view name, std::uint64_t number);
  void append(std::string_view name, double number);

  void add(const client_event::Opened& opened);
  void add(const client_event::Result& result);
  void add(const client_event::Message& message);
  void add(const client_event::Flushed& flushed);
  void add(const client_event::Rejected& rejected);
  void add(const client_event::Warned& warned);
  void add(const client_event::Goaway& goaway);
  void add(const client_event::Resumed& resumed);
  void add(const client_event::Closed& closed);

  std::string file_;    // the begin of each line: "{" and the members "file" and "channel"
  std::string stream_;  // then the member "stream"; empty until the stream has a name
  std::string line_;
};

}  // namespace millrace
