// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/bytes.h"
#include "base/result.h"
#include "transport/net/file_descriptor.h"

namespace millrace {

// What a socket holds in memory at most.
struct FramedLimits {
  std::size_t max_message = std::size_t{64} << 20;   // received; a longer one ends the connection
  std::size_t max_outgoing = std::size_t{64} << 20;  // bytes that wait until the peer reads
  bool takes_descriptor = false;  // a message may bring a descriptor; else that is an error
  // Memory for received bytes beyond `unshared` is taken from this budget, which several sockets
  // share; if it is used up, the connection ends. Null: no such bound. Outlives the socket.
  Budget* incoming = nullptr;
  std::size_t unshared = 0;
};

enum class FramedError : std::uint8_t {
  closed,      // the peer ended the connection between two messages
  lost,        // it ended in the middle of one, or the socket failed
  too_long,    // a message longer than max_message
  descriptor,  // a descriptor that nobody asked for, or that this process has no room for
  no_room,     // the budget for received bytes is used up
};

// Messages over a stream socket, a Unix socket or TCP: u32 length, little-endian, then that many
// bytes. Over a Unix socket a descriptor can go with a message. Nothing here blocks: the owner
// waits for native_handle() (poll, Asio), for input always, for output while has_output(). After
// an error the connection is of no more use.
//
// Confined to one thread.
class FramedSocket {
 public:
  // A connected stream socket, made non-blocking.
  FramedSocket(FileDescriptor socket, const FramedLimits& limits);

  // Throws std::system_error that names the path.
  static FramedSocket connect(const std::string& path, const FramedLimits& limits);

  int native_handle() const { return socket_.get(); }
  // Holds for all that is received and sent from now on.
  void set_limits(const FramedLimits& limits) { limits_ = limits; }

  // The next message; nothing when none is complete yet. It lives until the next call and begins
  // at an address that FlatBuffers can read where that costs nothing.
  [[nodiscard]] Result<std::optional<Bytes>, FramedError> try_receive();
  // A message has begun to arrive and is not complete.
  bool is_within_message() const { return begin_ != end_; }
  // Reads once and drops the bytes. False at the end of the connection.
  bool discard_input();

  // The descriptor that came with the last message or is on its way with the next.
  FileDescriptor take_descriptor() { return std::move(received_descriptor_); }

  // Sends what goes at once and keeps the rest. `full`: nothing was taken, since more than
  // max_outgoing would wait; or, with a descriptor, since anything would. A failure shows at
  // try_receive too.
  enum class Sent : std::uint8_t { taken, full, failed };
  [[nodiscard]] Sent try_send(Bytes message, int descriptor = -1);

  // Sends waiting bytes as long as the socket takes them, at most 1 MiB per call, so that other
  // work of the thread is not delayed. False when the socket failed.
  [[nodiscard]] bool flush();
  bool has_output() const { return sent_ < outgoing_.size(); }
  std::size_t unsent() const { return outgoing_.size() - sent_; }  // bytes

  // Ends the connection at both ends: the peer reads what was sent, then the end. The handle stays
  // open, so that whoever waits for it can wake up.
  void end();
  // Our direction only.
  void end_output();

 private:
  std::optional<Bytes> next_message();
  Result<std::size_t, FramedError> read_some();
  bool make_room();
  std::size_t declared_size() const;
  void keep(Bytes bytes);

  FileDescriptor socket_;
  FramedLimits limits_;
  std::vector<std::byte> incoming_;
  std::size_t begin_, end_;  // of what was received and not given out
  Share shared_;             // of limits_.incoming
  FileDescriptor received_descriptor_;
  std::vector<std::byte> outgoing_;
  std::size_t sent_ = 0;  // of outgoing_
};

}  // namespace millrace
