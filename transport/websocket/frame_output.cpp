// SPDX-License-Identifier: Apache-2.0
#include "transport/websocket/frame_output.h"

#include <algorithm>
#include <cassert>

namespace millrace {
namespace {

constexpr std::size_t kept_capacity = 4 * 1024;  // capacity kept for later frames
constexpr std::size_t longest_reason = 120;

}  // namespace

void FrameOutput::append(std::string& to, Opcode opcode, std::string_view payload) {
  if (closed_) return;
  append_frame(to, opcode, payload, keys_ ? std::optional(keys_->next()) : std::nullopt);
}

void FrameOutput::add(Opcode opcode, std::string_view payload) {
  if (closed_) return;
  assert(long_.empty());
  if (keys_ || payload.size() <= most_copied) return append(frames_, opcode, payload);
  FrameHead::append(frames_, first_byte(opcode), payload.size());
  long_ = payload;
}

void FrameOutput::pong(std::string_view payload) {
  if (!blocked_) return append(frames_, Opcode::pong, payload);
  if (!closed_) replies_.clear();
  append(replies_, Opcode::pong, payload);
}

void FrameOutput::close(std::uint16_t code, std::string_view reason) {
  std::string payload{static_cast<char>(code >> 8), static_cast<char>(code)};
  payload += reason.substr(0, longest_reason);
  append(blocked_ ? replies_ : frames_, Opcode::close, payload);
  closed_ = true;
}

FrameOutput::Buffers FrameOutput::unwritten() const {
  return {boost::asio::buffer(frames_), boost::asio::buffer(long_.data(), long_.size())};
}

bool FrameOutput::written(std::size_t size) {
  const std::size_t first = std::min(size, frames_.size());
  frames_.erase(0, first);
  long_.remove_prefix(size - first);
  blocked_ = !empty();
  if (blocked_) return false;
  if (frames_.capacity() > kept_capacity) std::string().swap(frames_);
  if (!replies_.empty()) frames_.swap(replies_);
  return true;
}

void FrameOutput::drop() {
  std::string().swap(frames_);
  std::string().swap(replies_);
  long_ = {};
  blocked_ = false;
}

}  // namespace millrace
