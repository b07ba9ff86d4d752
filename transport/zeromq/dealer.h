// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/time.h"
#include "transport/zeromq/message.h"

namespace millrace {

// A DEALER socket and its one connection, which is never made again by itself: where it ended, so
// has what went over it. Waits for nothing. Messages are of one part.
//
// Whoever waits for it waits for both descriptors, which tell of news once and not of all: after
// one was readable, and after every other call too, follow(), receive() and a send that found no
// room are tried until is_news() is false.
//
// Confined to one thread.
class ZeromqDealer {
 public:
  // Begins to connect. `endpoint` is "tcp://ADDRESS:PORT", an address and no name. A longer message
  // than `max_message` ends the connection, and so does a service that sends nothing for `silence`
  // after a PING. A PING is sent every 2 s, or every third of `silence` if that is less. Throws
  // std::runtime_error.
  ZeromqDealer(const std::string& endpoint, std::size_t max_message, Duration silence,
               std::chrono::milliseconds linger = {});
  // Waits at most `linger` for what was sent to be on its way; what is not is dropped.
  ~ZeromqDealer();

  std::array<int, 2> descriptors() const;

  enum class State { connecting, connected, ended };
  // Takes in what has happened. What came before the end can still be received.
  State follow();
  // Why it ended, for people.
  const std::string& reason() const;

  // Nothing when there is none. One of more parts ends the connection.
  std::optional<ZeromqMessage> receive();
  // False when the other end has to read first, or follow() has not told that it is connected, or
  // that it is not any more: nothing was taken.
  [[nodiscard]] bool send(Bytes message);
  // Whether it is worth to try at once. `to_receive`, `to_send`: what the caller would do.
  bool is_news(bool to_receive, bool to_send);

 private:
  class Connected;
  std::unique_ptr<Connected> connected_;
};

}  // namespace millrace
