// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "transport/file_descriptor.h"

namespace millrace {

// What a socket holds in memory at most.
struct LocalLimits {
  std::size_t max_message = std::size_t{64} << 20;   // received; a longer one ends the connection
  std::size_t max_outgoing = std::size_t{64} << 20;  // bytes that wait until the peer reads
  bool takes_descriptor = false;  // a message may bring a descriptor; else that is an error
};

enum class LocalError : std::uint8_t {
  closed,      // the peer ended the connection between two messages
  lost,        // it ended in the middle of one, or the socket failed
  too_long,    // a message longer than max_message
  descriptor,  // a descriptor that nobody asked for, or that this process has no room for
};

// Messages over a Unix stream socket: u32 length, little-endian, then that many bytes. A
// descriptor can go with a message. Nothing here blocks: who waits for the socket (poll, Asio)
// does it on native_handle(), for input always, for output while has_output(). After an error
// the connection is of no more use.
//
// Confined to one thread.
class LocalSocket {
 public:
  // A connected stream socket, made non-blocking.
  LocalSocket(FileDescriptor socket, const LocalLimits& limits);

  // Throws std::system_error that names the path.
  static LocalSocket connect(const std::string& path, const LocalLimits& limits);

  int native_handle() const { return socket_.get(); }

  // The next message; nothing when none is complete yet. It lives until the next call and begins
  // at an address that FlatBuffers can read where that costs nothing.
  [[nodiscard]] Result<std::optional<Bytes>, LocalError> try_receive();

  // The descriptor that came with the last message or is on its way with the next.
  FileDescriptor take_descriptor() { return std::move(received_descriptor_); }

  // Sends what goes at once and keeps the rest. `full`: nothing was taken, since more than
  // max_outgoing would wait; or, with a descriptor, since anything would. A failure shows at
  // try_receive too.
  enum class Sent : std::uint8_t { taken, full, failed };
  [[nodiscard]] Sent try_send(Bytes message, int descriptor = -1);

  // Sends of what waits as much as goes; false when the socket failed.
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
  Result<std::size_t, LocalError> read_some();
  void make_room();
  std::size_t declared_size() const;
  void keep(Bytes bytes);

  FileDescriptor socket_;
  LocalLimits limits_;
  std::vector<std::byte> incoming_;
  std::size_t begin_, end_;  // of what was received and not given out
  FileDescriptor received_descriptor_;
  std::vector<std::byte> outgoing_;
  std::size_t sent_ = 0;  // of outgoing_
};

}  // namespace millrace
