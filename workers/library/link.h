// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/time.h"
#include "schemas/worker_codec.h"
#include "transport/net/file_descriptor.h"
#include "transport/net/framed_socket.h"
#include "workers/library/worker.h"

namespace millrace {

// A worker's connection to the service: decoded messages in, bytes out, and when either last
// happened. After it is constructed nothing but wait() blocks. Throws WorkerError if the connection
// is of no more use; ServiceAbsent if it ended before anything came.
//
// Confined to one thread, but for wait(), which looks at the descriptors only.
class WorkerLink {
 public:
  // To a worker url; empty: the default one. `meanwhile` is as a Worker's.
  WorkerLink(const std::string& url, const std::function<void()>& meanwhile);
  ~WorkerLink();

  // Waits for the answer to `hello`. Throws what the service refused, and what `meanwhile` throws.
  worker_protocol::Welcome shake_hands(const worker_protocol::Hello& hello,
                                       const std::function<void()>& meanwhile);
  // The error that a message from the service stands for.
  static WorkerError refusal(const std::string& what, const worker_protocol::Refused& refused,
                             const std::string& in_hand = "");

  // The next message, if one is complete.
  std::optional<worker_protocol::ToWorker> receive();
  void reuse(worker_protocol::HandedBatch&& batch) { decoder_.reuse(std::move(batch)); }
  FileDescriptor take_descriptor() { return socket_.take_descriptor(); }

  // False: nothing was taken, too much waits to be sent.
  bool try_send(Bytes message);
  // Sends waiting output as long as the socket takes it.
  void flush();
  bool has_output() const { return socket_.has_output(); }
  // Ends the connection, and wakes the thread that waits.
  void end() { socket_.end(); }

  // Until there may be a message or room to send, or `wake` is readable, or the deadline.
  enum class Until : std::uint8_t { message, room, message_or_room };
  void wait(Time deadline, Until until, int wake) const;
  // What to wait for so that a message is seen, and waiting output is sent.
  Until until_message() const {
    return socket_.has_output() ? Until::message_or_room : Until::message;
  }

  Time heard() const { return heard_; }
  Time sent() const { return sent_; }

 private:
  [[noreturn]] void throw_ended(FramedError error) const;

  const std::string url_;
  FramedSocket socket_;
  worker_protocol::Decoder decoder_;
  Time heard_ = Clock::now(), sent_ = Clock::now();
  bool has_heard_ = false;  // a message has come
};

}  // namespace millrace
