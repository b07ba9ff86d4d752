// SPDX-License-Identifier: Apache-2.0
#include "load/clients/websocket_frame.h"

#include <array>
#include <cassert>
#include <cstring>

namespace millrace::load {

namespace {

// Eight bytes at a time: the compiler makes vectors of it.
void mask(std::byte* to, Bytes from, std::uint32_t key) {
  const std::uint64_t twice = std::uint64_t{key} << 32 | key;
  std::size_t at = 0;
  for (; at + sizeof twice <= from.size(); at += sizeof twice) {
    std::uint64_t word;
    std::memcpy(&word, from.data() + at, sizeof word);
    word ^= twice;
    std::memcpy(to + at, &word, sizeof word);
  }
  for (; at < from.size(); ++at) to[at] = from[at] ^ static_cast<std::byte>(key >> (8 * (at % 4)));
}

}  // namespace

FrameWriter::FrameWriter() : keys_(std::random_device{}()) {}

std::size_t FrameWriter::write(MutableBytes to, Opcode opcode, Bytes payload) {
  assert(to.size() >= payload.size() + longest_header);
  std::size_t size = 0;
  const auto put = [&](std::uint64_t byte) { to[size++] = static_cast<std::byte>(byte); };
  const auto put_length = [&](int bytes) {
    for (int i = bytes - 1; i >= 0; --i) put(payload.size() >> (8 * i));
  };
  put(0x80 | static_cast<unsigned>(opcode));
  if (payload.size() < 126) {
    put(0x80 | payload.size());
  } else if (payload.size() < 65536) {
    put(0x80 | 126);
    put_length(2);
  } else {
    put(0x80 | 127);
    put_length(8);
  }
  const std::uint32_t key = static_cast<std::uint32_t>(keys_() * 0x9e3779b9u);
  std::memcpy(to.data() + size, &key, sizeof key);
  size += sizeof key;
  mask(to.data() + size, payload, key);
  return size + payload.size();
}

std::optional<ServerFrame> read_frame(Bytes bytes, std::size_t longest) {
  if (bytes.size() < 2) return std::nullopt;
  const auto first = static_cast<unsigned>(bytes[0]), second = static_cast<unsigned>(bytes[1]);
  if ((first & 0x70) || (second & 0x80)) return ServerFrame{};
  std::size_t length = second, header = 2;
  if (const std::size_t more = length == 126 ? 2 : length == 127 ? 8 : 0) {
    if (bytes.size() < header + more) return std::nullopt;
    length = 0;
    for (std::size_t i = 0; i < more; ++i)
      length = length << 8 | static_cast<std::size_t>(bytes[header + i]);
    header += more;
  }
  if (length > longest) return ServerFrame{};
  if (bytes.size() < header + length) return std::nullopt;
  return ServerFrame{.opcode = static_cast<Opcode>(first & 15),
                     .final = (first & 0x80) != 0,
                     .payload = bytes.subspan(header, length),
                     .size = header + length};
}

}  // namespace millrace::load
