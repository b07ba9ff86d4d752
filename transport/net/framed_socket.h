// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/bytes.h"
#include "base/file_descriptor.h"
#include "base/result.h"

namespace millrace {

// The limits of a FramedSocket. Sizes are in bytes.
struct FramedLimits {
  std::size_t max_message = std::size_t{64} << 20;   // received; a longer one is an error
  std::size_t max_outgoing = std::size_t{64} << 20;  // unsent bytes
  bool accepts_descriptor = false;  // a message may bring a descriptor; else that is an error
  // Memory for received bytes beyond `unshared` is taken from this budget, which several sockets
  // share. If it is used up, receiving fails. Null: no such limit. Outlives the socket.
  Budget* incoming = nullptr;
  std::size_t unshared = 0;
};

enum class FramedError : std::uint8_t {
  closed,      // the peer ended the connection between two messages
  lost,        // the connection ended within a message, or the socket failed
  too_long,    // a message longer than max_message
  descriptor,  // an unexpected file descriptor, or one more than this process can have
  no_room,     // the budget for received bytes is used up
};

// Sends and receives messages over a stream socket (a Unix socket or TCP). A message is its length
// as a little-endian u32, then that many bytes. Over a Unix socket, a file descriptor can be sent
// with a message. No call except connect() blocks: the owner waits for native_handle() (poll,
// Asio), for input always, for output while has_output(). After an error the connection cannot be
// used further.
//
// Confined to one thread.
class FramedSocket {
 public:
  // Takes a connected stream socket and makes it non-blocking. Throws std::system_error.
  FramedSocket(FileDescriptor socket, const FramedLimits& limits);

  // Connects to the Unix socket at `path`. Throws std::system_error that names the path, or
  // std::invalid_argument if the path is empty or too long.
  static FramedSocket connect(const std::string& path, const FramedLimits& limits);

  int native_handle() const { return socket_.get(); }
  // Applies to all messages received and sent from now on.
  void set_limits(const FramedLimits& limits) { limits_ = limits; }

  // The next message; nullopt if none is complete yet. Valid until the next call. The first message
  // in the buffer is aligned to 8 bytes, as FlatBuffers needs; the messages after it may not be.
  [[nodiscard]] Result<std::optional<Bytes>, FramedError> try_receive();
  // True if a message has begun to arrive and is not complete.
  bool is_within_message() const { return begin_ != end_; }
  // Reads once and drops the bytes. False at the end of the connection, or if the socket failed.
  bool discard_input();

  // The descriptor that came with the last message, or with a part of the next one.
  FileDescriptor take_descriptor() { return std::move(received_descriptor_); }

  // Sends as many bytes as the socket accepts and queues the rest. While the queue is empty, a
  // message of any length is accepted. `full`: the message is not accepted, because more than
  // max_outgoing bytes would be queued; or because it comes with a descriptor and cannot be sent
  // now. After `failed`, try_receive() returns the error too.
  enum class Sent : std::uint8_t { accepted, full, failed };
  [[nodiscard]] Sent try_send(Bytes message, int descriptor = -1);

  // Sends queued bytes until the socket accepts no more, at most 1 MiB per call, so that other work
  // of the thread is not delayed. False if the socket failed.
  [[nodiscard]] bool flush();
  bool has_output() const { return sent_ < outgoing_.size(); }
  std::size_t unsent() const { return outgoing_.size() - sent_; }  // bytes

  // Shuts down both directions. The peer can read the bytes that were sent, then the end. The
  // descriptor stays open, so that waits for native_handle() return.
  void end();
  // Shuts down the sending direction only.
  void end_output();

 private:
  std::optional<Bytes> next_message();
  Result<std::size_t, FramedError> read_some();
  bool reserve_space();
  std::size_t declared_size() const;
  void enqueue(Bytes bytes);

  FileDescriptor socket_;
  FramedLimits limits_;
  std::vector<std::byte> incoming_;
  std::size_t begin_, end_;  // the received bytes in incoming_ that were not yet returned
  Share shared_;             // the part of limits_.incoming in use
  FileDescriptor received_descriptor_;
  std::vector<std::byte> outgoing_;
  std::size_t sent_ = 0;  // bytes at the front of outgoing_
};

}  // namespace millrace
