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
#include "base/file_descriptor.h"
#include "bench/bare_arrivals.h"
#include "transport/http/reader.h"

namespace millrace::bench {

// A minimal server for the clients of docs/protocol.md: one thread that waits in epoll, reads once
// per wake-up into one buffer for all connections, unmasks in place, and with `answers` sends a
// result for each message at once. Checks nothing. Disconnects a client whose socket is full, or
// whose frame does not fit into the buffer of 256 KiB. Confined to one thread.
class BareEpoll {
 public:
  // Listens on `port` of loopback; 0: a free port. Throws std::system_error.
  BareEpoll(std::uint16_t port, bool answers, BareArrivals& arrivals);

  std::uint16_t port() const;
  // Serves until SIGTERM, which must be blocked.
  void run();

 private:
  struct Client {
    FileDescriptor socket;
    std::unique_ptr<HttpReader> upgrade = std::make_unique<HttpReader>();  // null after the answer
    std::vector<std::byte> partial_frame;                                  // its received bytes
    std::uint64_t bytes = 0, messages = 0;
  };

  void watch(int descriptor);
  void accept_all();
  // These return false if the connection is over.
  bool read(Client& client);
  bool handshake(Client& client);
  bool handle(Client& client, unsigned opcode, Bytes payload);
  bool answer(Client& client, std::size_t size);
  bool send(Client& client, unsigned opcode, std::string_view payload);

  const bool answers_;
  BareArrivals& arrivals_;
  FileDescriptor epoll_, listener_, terminated_;
  std::vector<std::optional<Client>> clients_;  // index: the descriptor
  std::vector<std::byte> buffer_;
  std::string head_, text_;  // reused
};

}  // namespace millrace::bench
