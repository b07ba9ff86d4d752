// SPDX-License-Identifier: Apache-2.0
#include "transport/access/random_bytes.h"

#include <openssl/rand.h>

#include <array>
#include <bit>
#include <stdexcept>

namespace millrace {

void fill_random(std::span<std::uint8_t> bytes) {
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1)
    throw std::runtime_error("the system has no random bytes");
}

StreamKey new_stream_key() {
  StreamKey key;
  fill_random(key.bytes);
  return key;
}

std::uint32_t new_opening() {
  std::array<std::uint8_t, 4> bytes;
  fill_random(bytes);
  return std::bit_cast<std::uint32_t>(bytes);
}

}  // namespace millrace
