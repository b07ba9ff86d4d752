// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "bench/bare_arrivals.h"
#include "transport/http/reader.h"
#include "transport/net/file_descriptor.h"

namespace millrace::bench {

// The least that clients of docs/protocol.md can stream to: one thread that sleeps in epoll, reads
// once per wake-up into one buffer for all connections, unmasks there, and where it answers sends a
// result for each message at once. It checks nothing, and waits for no reader: one whose socket is
// full is cut, and so is one whose frame does not fit into the buffer of 256 KiB.
// Confined to one thread.
class BareEpoll {
 public:
  // On a free port of loopback if `port` is 0. Throws std::system_error.
  BareEpoll(std::uint16_t port, bool answers, BareArrivals& arrivals);

  std::uint16_t port() const;
  // Returns at SIGTERM, which must be blocked.
  void run();

 private:
  struct Client {
    FileDescriptor socket;
    std::unique_ptr<HttpReader> upgrade = std::make_unique<HttpReader>();  // until it was answered
    std::vector<std::byte> begun;  // what is here of a frame
    std::uint64_t bytes = 0, messages = 0;
  };

  void watch(int descriptor);
  void accept_all();
  // These are false when the connection is over.
  bool read(Client& client);
  bool shake_hands(Client& client);
  bool take(Client& client, unsigned opcode, Bytes payload);
  bool answer(Client& client, std::size_t size);
  bool send(Client& client, unsigned opcode, std::string_view payload);

  const bool answers_;
  BareArrivals& arrivals_;
  FileDescriptor epoll_, listener_, terminated_;
  std::vector<std::optional<Client>> clients_;  // by descriptor
  std::vector<std::byte> buffer_;
  std::string head_, text_;  // used again and again
};

}  // namespace millrace::bench
