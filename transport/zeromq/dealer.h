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

// A DEALER socket with one connection. It does not reconnect, because the streams of an ended
// connection have ended too. Messages have one part. No call blocks, except the destructor.
//
// To wait, wait for both descriptors(). They become readable once, possibly for several events.
// After that, and after every other call here, call process_events(), receive() and a send() that
// returned false again until has_events() is false.
//
// Confined to one thread.
class ZeromqDealer {
 public:
  // Begins to connect to `endpoint`, "tcp://ADDRESS:PORT" (not a host name). The connection ends if
  // a message is longer than `max_message` bytes, or if the service sends nothing for `silence`
  // after a PING. A PING is sent every 2 s, or every third of `silence` if that is less. Throws
  // std::runtime_error.
  ZeromqDealer(const std::string& endpoint, std::size_t max_message, Duration silence,
               std::chrono::milliseconds linger = {});
  // Waits at most `linger` until the messages are sent, then drops the rest.
  ~ZeromqDealer();

  std::array<int, 2> descriptors() const;

  enum class State { connecting, connected, ended };
  // Processes the events of the connection and returns its state. After `ended`, messages that
  // arrived before can still be received.
  State process_events();
  // Why the connection ended, for people.
  const std::string& reason() const;

  // The next message; nullopt if no message waits. A message of several parts ends the connection.
  std::optional<ZeromqMessage> receive();
  // False, and the message is not accepted, if the service must read first, or if the last state
  // from process_events() is not `connected`.
  [[nodiscard]] bool send(Bytes message);
  // True if process_events() has an event, or receive() (with `to_receive`) or send() (with
  // `to_send`) may succeed now.
  bool has_events(bool to_receive, bool to_send);

 private:
  class Connected;
  std::unique_ptr<Connected> connected_;
};

}  // namespace millrace
