// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

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

// The service's own count of a stream.
struct StreamTotals {
  std::uint64_t frames = 0;  // received frames, in frames of the pipeline
  std::uint64_t rows = 0;
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
  // Text that does not identify its rows. `end`: the position, in seconds of the stream, up to
  // which it covers the audio; nullopt if the protocol does not report it.
  virtual void text(std::uint32_t client, std::optional<double> end, Time now) = 0;
  // The service has finished the audio before a commit. `due`: that of the commit. `failed`: it has
  // an error in place of the result.
  virtual void finished(std::uint32_t client, Time due, bool failed, Time now) = 0;
  // A message of the worker, with its number in its stream.
  virtual void message(std::uint32_t client, std::uint64_t number) = 0;
  // The service replaced `frames` frames of the stream by a gap.
  virtual void rejected(std::uint32_t client, std::uint64_t frames) = 0;
  // The stream is over after its end. `totals`: nullopt if the protocol does not report them.
  virtual void closed(std::uint32_t client, std::optional<StreamTotals> totals, Time now) = 0;
  // The stream continues over another connection. `kept`: with its state; otherwise the service has
  // opened it anew.
  virtual void resumed(std::uint32_t client, bool kept, Time now) = 0;
  // The stream ended in another way, and not by disconnect().
  virtual void broken(std::uint32_t client, std::string_view why, Time now) = 0;
};

}  // namespace millrace::load
