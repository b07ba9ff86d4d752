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

// Turns messages into bytes (worker.fbs). Keeps its memory from message to message, so that a
// batch costs no allocation once it has grown. Confined to one thread.
class Encoder {
 public:
  Encoder();
  ~Encoder();
  Encoder(Encoder&&) noexcept;
  Encoder& operator=(Encoder&&) noexcept;

  // What they return lives until the next call.
  Bytes encode(const Hello& hello);
  Bytes encode(const Done& done);
  Bytes encode(const Heartbeat& heartbeat);
  Bytes encode(const Bye& bye);
  Bytes encode(const Welcome& welcome);
  Bytes encode(const HandedBatch& batch);
  Bytes encode(const Company& company);
  Bytes encode(const Refused& refused);
  Bytes encode(const Unmapped& unmapped);

  // A batch whose tensor lies elsewhere; its own is not looked at.
  Bytes encode(const HandedBatch& batch, Bytes tensor);
  // A Done whose answers lie elsewhere; its own are not looked at.
  Bytes encode(const Done& done, std::span<const Answer> answers,
               std::span<const Answer> mark_answers);

 private:
  std::unique_ptr<flatbuffers::FlatBufferBuilder> builder_;
};

// Turns bytes of a peer into messages: verifies them against tight limits, and then that every
// value is in its range and that counts agree. What only the two ends of one connection can know
// (is this slot below Welcome.slots, does this batch have so many rows) is theirs to check.
//
// An answer that calls itself JSON or text and is not becomes an `error` answer that says so: a
// worker may have one bad row in a good batch.
//
// Confined to one thread.
class Decoder {
 public:
  // Longer messages are refused unread.
  explicit Decoder(std::size_t max_size) : max_size_(max_size) {}

  [[nodiscard]] Result<ToService, WireError> to_service(Bytes message);
  // A batch's `tensor` lives as long as `message` is untouched and nothing else is decoded.
  [[nodiscard]] Result<ToWorker, WireError> to_worker(Bytes message);

  // Gives back messages whose memory the next of their kind may use.
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
