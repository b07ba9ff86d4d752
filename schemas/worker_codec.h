// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/answer.h"
#include "base/bytes.h"
#include "base/result.h"
#include "schemas/aligned_message.h"
#include "schemas/wire_error.h"
#include "schemas/worker_messages.h"

namespace flatbuffers {
class FlatBufferBuilder;
}

namespace millrace::worker_protocol {

// Encodes messages (worker.fbs). Does not allocate for a batch once its memory is large enough.
// Confined to one thread.
class Encoder {
 public:
  Encoder();
  ~Encoder();
  Encoder(Encoder&&) noexcept;
  Encoder& operator=(Encoder&&) noexcept;

  // The bytes are valid until the next call.
  Bytes encode(const Hello& hello);
  Bytes encode(const Done& done);
  Bytes encode(const Heartbeat& heartbeat);
  Bytes encode(const Bye& bye);
  Bytes encode(const Welcome& welcome);
  Bytes encode(const HandedBatch& batch);
  Bytes encode(const Company& company);
  Bytes encode(const Refused& refused);
  Bytes encode(const Unmapped& unmapped);
  Bytes encode(const Send& send);
  Bytes encode(const Room& room);
  Bytes encode(const LateAnswer& late);
  Bytes encode(const Describe& describe);

  // A batch with `tensor` in place of batch.tensor.
  Bytes encode(const HandedBatch& batch, Bytes tensor);
  // A Done with these answers in place of its own.
  Bytes encode(const Done& done, std::span<const Answer> answers,
               std::span<const Answer> mark_answers);

 private:
  std::unique_ptr<flatbuffers::FlatBufferBuilder> builder_;
};

// Decodes the messages of an untrusted peer: verifies the bytes against tight limits, and then that
// every value is in its range and that counts agree. Checks that need the state of the connection
// remain for the caller: a slot is below Welcome::slots, an answer exists for each row of the
// batch.
//
// An answer with invalid JSON or text becomes an `error` answer with the reason, because a good
// batch may have one bad row. It keeps its endpoint.
//
// Confined to one thread.
class Decoder {
 public:
  // Longer messages, in bytes, are refused unread.
  explicit Decoder(std::size_t max_size) : max_size_(max_size) {}

  [[nodiscard]] Result<ToService, WireError> to_service(Bytes message);
  // A batch's `tensor` is a view: valid while `message` is unchanged and until the next call.
  [[nodiscard]] Result<ToWorker, WireError> to_worker(Bytes message);

  // Returns the memory of a decoded message for the next one of its kind.
  void reuse(Done&& done) { done_ = std::move(done); }
  void reuse(HandedBatch&& batch) { batches_.push_back(std::move(batch)); }

 private:
  HandedBatch fresh_batch();

  std::size_t max_size_;
  AlignedMessage aligned_;
  Done done_;
  std::vector<HandedBatch> batches_;
};

}  // namespace millrace::worker_protocol
