// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <boost/beast/websocket/error.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schemas/text.h"
#include "transport/websocket/frame_head.h"

namespace millrace::test {

// What one end of a WebSocket made of the bytes of the other one.
struct SeenFrames {
  std::vector<std::string> messages{};  // "text …", "binary …"
  std::string end = "none";
  std::vector<std::string> frames{};  // that it sent; of a close only the code
};

// `code` is the peer's; 0: none.
inline std::string end_by_beast(boost::system::error_code error, std::uint16_t code) {
  namespace websocket = boost::beast::websocket;
  if (error == websocket::error::message_too_big || error == websocket::error::buffer_overflow)
    return "too big";
  if (error == websocket::condition::protocol_violation || code > 4999) return "protocol";
  if (code != 0) return "closed" + std::to_string(code);
  return error == websocket::error::closed ? "closed1005" : "lost";
}

// Of a server. Of a close only the code, as only ours has a reason.
inline std::vector<std::string> frames_in(std::string_view wire) {
  std::vector<std::string> frames;
  while (!wire.empty()) {
    const auto head = FrameHead::read(std::as_bytes(std::span(wire)));
    if (!head || head->masked || wire.size() - head->size < head->payload)
      return {"no frames of a server"};
    frames.push_back(static_cast<char>(head->first) +
                     std::string(wire.substr(head->size, head->first == 0x88 ? 2 : head->payload)));
    wire.remove_prefix(head->size + head->payload);
  }
  return frames;
}

inline std::string close_with(std::uint16_t code) {
  return {'\x88', static_cast<char>(code >> 8), static_cast<char>(code)};
}

// True where ours may differ: it closes where Beast goes on, or closes with another code.
inline bool closes_better(const SeenFrames& ours, const SeenFrames& by_beast) {
  if (ours.end != "protocol" || ours.frames.empty()) return false;
  const std::string close = ours.frames.back();
  const std::string beasts = by_beast.frames.empty() ? "" : by_beast.frames.back();
  // A length whose first bit is set; a close code above 4999.
  if (close == close_with(1002)) return by_beast.end == "too big" || beasts >= close_with(5000);
  if (close != close_with(1007)) return false;
  if (beasts == close_with(1002)) return true;  // the reason of a close is no UTF-8
  const std::size_t next = ours.messages.size();
  return next < by_beast.messages.size() && by_beast.messages[next].starts_with("text ") &&
         !is_utf8(by_beast.messages[next]);
}

// The same, or better.
inline bool agree(const SeenFrames& ours, const SeenFrames& by_beast) {
  if (!closes_better(ours, by_beast))
    return ours.messages == by_beast.messages && ours.end == by_beast.end &&
           ours.frames == by_beast.frames;
  return ours.messages.size() <= by_beast.messages.size() &&
         std::ranges::equal(ours.messages,
                            std::span(by_beast.messages).first(ours.messages.size()));
}

}  // namespace millrace::test
