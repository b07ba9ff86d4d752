// SPDX-License-Identifier: Apache-2.0
#include "transport/websocket/frame_head.h"

#include <algorithm>
#include <cstring>

namespace millrace {

std::optional<FrameHead> FrameHead::read(Bytes bytes) {
  if (bytes.size() < 2) return std::nullopt;
  const auto byte = [&](std::size_t i) { return std::to_integer<std::uint8_t>(bytes[i]); };
  FrameHead head{.first = byte(0), .masked = (byte(1) & 0x80) != 0};
  const unsigned length = byte(1) & 0x7f;
  const std::size_t more = length < 126 ? 0 : length == 126 ? 2 : 8;
  head.size = 2 + more + (head.masked ? head.key.size() : 0);
  if (bytes.size() < head.size) return std::nullopt;
  if (more == 0) head.payload = length;
  for (std::size_t i = 0; i < more; ++i) head.payload = head.payload << 8 | byte(2 + i);
  if (head.masked) std::copy_n(bytes.begin() + 2 + more, head.key.size(), head.key.begin());
  return head;
}

void FrameHead::append(std::string& out, std::uint8_t first, std::uint64_t payload,
                       std::optional<MaskingKey> key) {
  const std::size_t size = shortest(payload);
  out += static_cast<char>(first);
  out += static_cast<char>((key ? 0x80 : 0) | (size == 2 ? payload : size == 4 ? 126 : 127));
  for (std::size_t i = size - 2; i > 0; --i) out += static_cast<char>(payload >> 8 * (i - 1));
  if (key) out.append(reinterpret_cast<const char*>(key->data()), key->size());
}

void append_frame(std::string& out, Opcode opcode, std::string_view payload,
                  std::optional<MaskingKey> key) {
  FrameHead::append(out, first_byte(opcode), payload.size(), key);
  out += payload;
  if (key) mask(std::as_writable_bytes(std::span(out)).last(payload.size()), *key);
}

void mask(MutableBytes bytes, MaskingKey key) {
  std::array<std::byte, 8> twice;
  for (std::size_t i = 0; i < twice.size(); ++i) twice[i] = key[i % key.size()];
  std::uint64_t pattern = 0;
  std::memcpy(&pattern, twice.data(), sizeof pattern);
  std::size_t at = 0;
  for (; bytes.size() - at >= sizeof pattern; at += sizeof pattern) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    word ^= pattern;
    std::memcpy(bytes.data() + at, &word, sizeof word);
  }
  for (; at < bytes.size(); ++at) bytes[at] ^= key[at % key.size()];
}

}  // namespace millrace
