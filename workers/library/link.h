// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/file_descriptor.h"
#include "base/time.h"
#include "schemas/worker_codec.h"
#include "transport/net/framed_socket.h"
#include "workers/library/worker.h"

namespace millrace {

// A worker's connection to the service: receives decoded messages, sends encoded ones, and records
// when it last did so. Only the constructor, shake_hands() and wait() block. Functions throw
// WorkerError if the connection has ended or is unusable, and ServiceAbsent if it ended before the
// first message of the service.
//
// Confined to one thread, except wait(), which uses only the descriptors.
class WorkerLink {
 public:
  // Connects to `url`; empty: the default one. `url` and `meanwhile` are as for Worker.
  WorkerLink(const std::string& url, const std::function<void()>& meanwhile);
  ~WorkerLink();

  // Sends the first message, a Hello or a Describe, and waits for Welcome, up to 10 s. Throws the
  // refusal of the service, and exceptions of `meanwhile`.
  worker_protocol::Welcome shake_hands(const auto& first, const std::function<void()>& meanwhile) {
    worker_protocol::Encoder encoder;
    return receive_welcome(encoder.encode(first), meanwhile);
  }
  // The error for a Refused. The text is `what`, the service's message and `details`.
  static WorkerError refusal(const std::string& what, const worker_protocol::Refused& refused,
                             const std::string& details = "");

  // The next message; nullopt if none is complete.
  std::optional<worker_protocol::ToWorker> receive();
  // Keeps the memory of a batch for later ones.
  void reuse(worker_protocol::HandedBatch&& batch) { decoder_.reuse(std::move(batch)); }
  // The descriptor that came with Welcome.
  FileDescriptor take_descriptor() { return socket_.take_descriptor(); }

  // Sends or queues a message. Returns false, and does neither, if the send queue is full.
  bool try_send(Bytes message);
  // Sends queued output until the socket accepts no more.
  void flush();
  bool has_output() const { return socket_.has_output(); }
  // Ends the connection, and wakes the thread in wait().
  void end() { socket_.end(); }

  // Waits until the socket is ready as `until` says, the descriptor `wake` is readable (-1: none),
  // or `deadline` has passed. May return earlier.
  enum class Until : std::uint8_t { readable, writable, readable_or_writable };
  void wait(Time deadline, Until until, int wake) const;
  // The wait for a message, and for the socket to accept queued output.
  Until until_readable() const {
    return socket_.has_output() ? Until::readable_or_writable : Until::readable;
  }

  // When a message was last received, and when one was last sent or queued.
  Time last_received() const { return last_received_; }
  Time last_sent() const { return last_sent_; }

 private:
  worker_protocol::Welcome receive_welcome(Bytes first, const std::function<void()>& meanwhile);
  [[noreturn]] void throw_ended(FramedError error) const;

  const std::string url_;
  FramedSocket socket_;
  worker_protocol::Decoder decoder_;
  Time last_received_ = Clock::now(), last_sent_ = Clock::now();
  bool has_received_ = false;  // a message was received
};

}  // namespace millrace
