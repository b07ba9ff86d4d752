// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "schemas/aligned_message.h"
#include "schemas/wire_error.h"

namespace flatbuffers {
class FlatBufferBuilder;
}

namespace millrace {

// A result whose answer is bytes, as a client gets it (client.fbs). Views of memory that somebody
// else keeps.
struct BytesResult {
  std::string_view stream;
  std::uint64_t seq = 0;
  std::uint64_t begin = 0, end = 0;  // frames
  double begin_s = 0, end_s = 0;
  std::uint8_t flags = 0;  // as in chunker/row.h
  Bytes data;
};

// Writes the binary messages to clients, and keeps its memory from message to message. Confined
// to one thread.
class ClientEncoder {
 public:
  ClientEncoder();
  ~ClientEncoder();
  ClientEncoder(ClientEncoder&&) noexcept;
  ClientEncoder& operator=(ClientEncoder&&) noexcept;

  // The message; it lives until the next call.
  Bytes encode_result(const BytesResult& result);

 private:
  std::unique_ptr<flatbuffers::FlatBufferBuilder> builder_;
};

// The result lives as long as `message` and, where it had to be copied, `scratch` are untouched.
[[nodiscard]] Result<BytesResult, WireError> decode_result(Bytes message, std::size_t max_size,
                                                           AlignedMessage& scratch);

}  // namespace millrace
