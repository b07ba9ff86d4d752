// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/time.h"

namespace millrace::load {

// A result as a client received it. Positions are those of the row's body, in frames of the
// pipeline.
struct ReceivedResult {
  std::uint64_t seq = 0;
  std::uint64_t begin = 0, end = 0;
  bool gap = false;            // frames were lost before the row
  bool failed = false;         // it has an error in place of an answer
  std::string_view data = {};  // the answer as it was sent; valid during the call
};

// Receives the events of the streams of a transport. `client` is the index of a simulated client.
class ClientSink {
 public:
  virtual ~ClientSink() = default;
  virtual void opened(std::uint32_t client, Time now) = 0;
  // The stream was not opened; `why` is the reason, such as "503".
  virtual void refused(std::uint32_t client, std::string_view why, Time now) = 0;
  // After send() was false: it may succeed now.
  virtual void writable(std::uint32_t client) = 0;
  virtual void received(std::uint32_t client, const ReceivedResult& result, Time now) = 0;
  // A message of the worker, with its number in its stream.
  virtual void message(std::uint32_t client, std::uint64_t number) = 0;
  // The service replaced `frames` frames of the stream by a gap.
  virtual void rejected(std::uint32_t client, std::uint64_t frames) = 0;
  // The service has closed the stream, and reports `frames` received frames and `rows` rows.
  virtual void closed(std::uint32_t client, std::uint64_t frames, std::uint64_t rows, Time now) = 0;
  // The stream ended in another way, and not by disconnect().
  virtual void broken(std::uint32_t client, std::string_view why, Time now) = 0;
};

// The streams of many simulated clients over one protocol. Clients are identified by their index,
// and have at most one stream at a time. Waits and calls the sink only in poll(). Confined to one
// thread.
class LoadTransport {
 public:
  virtual ~LoadTransport() = default;

  // Opens a stream: opened() or refused() follows. Requires: the client has no stream.
  virtual void open(std::uint32_t client, const std::string& name) = 0;
  // Sends frames of an open stream. False if the stream or connection is full: nothing was sent,
  // and writable() follows.
  [[nodiscard]] virtual bool send(std::uint32_t client, Bytes frames) = 0;
  // Ends a stream: closed() or broken() follows.
  virtual void end(std::uint32_t client) = 0;
  // Drops the stream without an end. No event of it follows.
  virtual void disconnect(std::uint32_t client) = 0;

  // Passes events to the sink. Waits for one until `until`.
  virtual void poll(Time until, ClientSink& sink) = 0;
};

}  // namespace millrace::load
