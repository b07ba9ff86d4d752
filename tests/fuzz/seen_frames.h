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

// How one end of a WebSocket read the bytes of the other one.
struct SeenFrames {
  std::vector<std::string> messages{};  // "text …", "binary …"
  std::string end = "none";
  std::vector<std::string> frames{};  // the frames that it sent; a close without its reason
};

// How Beast ended the connection. `code` is the peer's close code, or 0.
inline std::string end_by_beast(boost::system::error_code error, std::uint16_t code) {
  namespace websocket = boost::beast::websocket;
  if (error == websocket::error::message_too_big || error == websocket::error::buffer_overflow)
    return "too big";
  if (error == websocket::condition::protocol_violation || code > 4999) return "protocol";
  if (code != 0) return "closed" + std::to_string(code);
  return error == websocket::error::closed ? "closed1005" : "lost";
}

// The frames of a server. A close is cut to its code, because only our closes have a reason.
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

// True if our connection has closed better than Beast 1.81: with another code, or at a point at
// which Beast continues. All frames before the close are the same.
inline bool closes_better(const SeenFrames& ours, const SeenFrames& by_beast) {
  const bool bad_gateway = ours.end == "closed1014";  // registered after Beast's list was made
  if ((ours.end != "protocol" && !bad_gateway) || ours.frames.empty()) return false;
  const std::span<const std::string> frames(ours.frames), beasts(by_beast.frames);
  const auto replies = frames.first(frames.size() - 1);
  if (beasts.size() < replies.size() || !std::ranges::equal(replies, beasts.first(replies.size())))
    return false;
  const bool by_code = frames.back() == close_with(1002),
             by_text = frames.back() == close_with(1007);
  if (beasts.size() == frames.size() && ours.messages == by_beast.messages) {
    const std::string& close = beasts.back();
    if (bad_gateway) return by_beast.end == "protocol" && close == close_with(1002);
    // A length whose first bit is set; a close code above 4999.
    if (by_code && by_beast.end == "too big") return close == close_with(1009);
    if (by_code) return close.starts_with('\x88') && close >= close_with(5000);
    // The reason of a close is not UTF-8.
    if (by_text && close == close_with(1002)) return true;
  }
  // A text that ends within a character, in an empty fragment.
  const std::span<const std::string> messages(by_beast.messages);
  const std::size_t next = ours.messages.size();
  return by_text && next < messages.size() &&
         std::ranges::equal(ours.messages, messages.first(next)) &&
         messages[next].starts_with("text ") && !is_utf8(messages[next]);
}

// True if both read the same, or ours has closed better.
inline bool agree(const SeenFrames& ours, const SeenFrames& by_beast) {
  return closes_better(ours, by_beast) ||
         (ours.messages == by_beast.messages && ours.end == by_beast.end &&
          ours.frames == by_beast.frames);
}

}  // namespace millrace::test
