// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "client/client_event.h"
#include "commands/console/console.h"
#include "schemas/transcripts/transcript.h"

namespace millrace {

// Prints the messages about the streams of a command: transcripts as text, all others as JSON
// lines. On a terminal, the newest text of an open segment is the last line, which grows. Elsewhere
// only final texts are printed, a line each.
//
// Confined to one thread. `console` must outlive it.
class StreamOutput {
 public:
  struct Look {
    bool json = false;   // transcripts too are JSON lines
    bool named = false;  // texts have the name of their stream
  };
  struct Source {
    std::uint64_t stream = 0;  // different for each stream
    std::string_view name{};
  };

  StreamOutput(Console& console, const Look& look) : console_(console), look_(look) {}

  // Prints a message about a stream; `line` is the message as a JSON line without newline. False if
  // it cannot be written.
  bool print(const ClientEvent& event, const Source& source, std::string_view line);
  // Prints a line about a stream that is over. On a terminal a text that no final one has replaced
  // stays.
  bool print_end(const Source& source, std::string_view line);
  // Prints a line on standard error.
  void print_problem(std::string_view line);

 private:
  struct Text {
    std::string head;  // the name, if texts have one
    std::string text;
  };

  bool print_line(std::string_view line);
  bool print_text(const Transcript& transcript, const Source& source);
  void keep_text(std::uint64_t stream);
  void hide_text();
  void show_text();

  Console& console_;
  const Look look_;
  std::map<std::uint64_t, Text> open_;  // on a terminal: the texts that are not final, by stream
  std::uint64_t newest_ = 0;            // the stream of the newest of these
  bool shown_ = false;                  // one of them is the last line
};

}  // namespace millrace
