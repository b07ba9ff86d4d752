// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "client/client.h"

namespace millrace::test {

using Words = std::vector<std::string>;

struct EventInWords {
  std::string operator()(const client_event::Opened& opened) const {
    return "open " + opened.stream;
  }
  std::string operator()(const client_event::Result& result) const {
    return std::to_string(result.seq) + " " + result.answer.data;
  }
  std::string operator()(const client_event::Message& message) const {
    return "message " + message.message.data;
  }
  std::string operator()(const client_event::Flushed& flushed) const {
    return "flushed " + std::to_string(flushed.mark);
  }
  std::string operator()(const client_event::Rejected& rejected) const {
    return "rejected " + rejected.message;
  }
  std::string operator()(const client_event::Warned& warned) const { return warned.message; }
  std::string operator()(const client_event::Goaway&) const { return "goaway"; }
  std::string operator()(const client_event::Resumed& resumed) const {
    return resumed.kept ? "resumed" : "anew";
  }
  std::string operator()(const client_event::Closed& closed) const {
    return "closed " + std::to_string(closed.frames);
  }
};

// All events, or the error at the end.
inline Words events_of(ClientStream& stream) {
  Words words;
  try {
    while (const auto event = stream.next()) words.push_back(std::visit(EventInWords(), *event));
  } catch (const ClientError& error) {
    words.emplace_back(error.what());
  }
  return words;
}

// Frames of two bytes, half of which straddle calls, among commands.
inline void send_all(ClientStream& stream) {
  stream.send(bytes_in("aabbc"));
  stream.flush(1);
  stream.send(bytes_in("cdd"));
  stream.message(R"({"m":1})");
  stream.set(R"({"lang":"de"})");
  stream.send(bytes_in("eeffgghhi"));
  stream.gap(5);
  stream.send(bytes_in("jjkkll"));
  stream.flush(2);
  stream.send(bytes_in("mmnn"));
  stream.end();
}

// The events after send_all(), from a service that answers each frame with its text.
inline const Words all{"open mic",
                       "0 aa",
                       "1 bb",
                       "flushed 1",
                       "2 cc",
                       "3 dd",
                       "message {\"m\":1}",
                       "message {\"lang\":\"de\"}",
                       "4 ee",
                       "5 ff",
                       "6 gg",
                       "7 hh",
                       "rejected half a frame",
                       "13 jj",
                       "14 kk",
                       "15 ll",
                       "flushed 2",
                       "16 mm",
                       "17 nn",
                       "closed 18"};

struct Outcome {
  Words words;       // without those of Resumed(true)
  long resumed = 0;  // their number
};

}  // namespace millrace::test
