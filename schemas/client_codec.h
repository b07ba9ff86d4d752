// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "base/bytes.h"
#include "base/result.h"
#include "schemas/aligned_message.h"
#include "schemas/client_messages.h"
#include "schemas/wire_error.h"

namespace flatbuffers {
class FlatBufferBuilder;
}

namespace millrace::client_protocol {

// Encodes messages (client.fbs). Does not allocate once its memory is large enough. Confined to one
// thread.
class Encoder {
 public:
  Encoder();
  ~Encoder();
  Encoder(Encoder&&) noexcept;
  Encoder& operator=(Encoder&&) noexcept;

  // The bytes are valid until the next call.
  Bytes encode(const Result& result);
  Bytes encode(const Ready& ready);
  Bytes encode(const Flushed& flushed);
  Bytes encode(const Rejected& rejected);
  Bytes encode(const Error& error);
  Bytes encode(const Closed& closed);
  Bytes encode(const Credit& credit);
  Bytes encode(const Goaway& goaway);
  Bytes encode(const Message& message);
  Bytes encode(const Ack& ack);
  Bytes encode(const Open& open);
  Bytes encode(const Frames& frames);
  Bytes encode(const Flush& flush);
  Bytes encode(const Reset& reset);
  Bytes encode(const Gap& gap);
  Bytes encode(const End& end);
  Bytes encode(const Post& post);
  Bytes encode(const SetOptions& set);
  Bytes encode(const Received& received);

 private:
  std::unique_ptr<flatbuffers::FlatBufferBuilder> builder_;
};

// Decodes the messages of an untrusted peer: verifies the bytes against tight limits, and then that
// every value is in the range that client_messages.h gives. The results are views: they are valid
// while the message is unchanged and until the next call. Confined to one thread.
class Decoder {
 public:
  // Longer messages, in bytes, are refused unread.
  explicit Decoder(std::size_t max_size) : max_size_(max_size) {}

  [[nodiscard]] millrace::Result<ToService, WireError> to_service(Bytes message);
  [[nodiscard]] millrace::Result<ToClient, WireError> to_client(Bytes message);

 private:
  std::size_t max_size_;
  AlignedMessage aligned_;
};

}  // namespace millrace::client_protocol
