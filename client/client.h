// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "client/client_error.h"
#include "client/client_event.h"
#include "client/client_stream.h"
#include "schemas/stream_request.h"

namespace millrace {

// The limits of a client. Byte limits are for each stream.
struct ClientSettings {
  // Unsent bytes at which sending waits.
  std::size_t unsent = 64 << 10;
  // Bytes of events, not yet returned by next(), at which the stream is held up: nothing more is
  // received (ws://, wss://) or sent (tcp://) until next() has returned half of them. Over tcp://,
  // messages of workers are received nevertheless: at 4 times as many bytes the stream fails
  // (slow_reader).
  std::size_t untaken = 1 << 20;
  // A stream that is held up fails with `slow_reader` if next() returns no event for this long.
  Duration taking = std::chrono::seconds(10);
  // Time for the service to answer when a stream is opened.
  Duration connect = std::chrono::seconds(10);
  // Time without sending after which the client sends a keepalive message.
  Duration keepalive = std::chrono::seconds(10);
  // Time without a response after which a connection is lost. Over ws:// and wss://: the service's
  // host acknowledges none of the sent bytes, and no message or ping arrives. Over tcp://: the
  // service answers no heartbeat; this is detected at most 2 s later, and after 30 s of silence at
  // the latest. A stream over ws:// or wss:// that can be resumed waits half as long.
  Duration silence = std::chrono::seconds(30);
  // Streams survive their connection, if the service allows it: the client connects again, and no
  // frame and no result is lost or repeated.
  bool resume = true;
  // Time without a connection after which such a stream is lost.
  Duration resume_window = std::chrono::seconds(15);
};

// A client of one service: opens streams, sends frames and receives results.
//
//   Client client("ws://127.0.0.1:8080");
//   ClientStream stream = client.open({.pipeline = "vad"});
//   stream.send(frames);  stream.end();
//   while (auto event = stream.next())
//     if (const auto* result = std::get_if<client_event::Result>(&*event)) use(*result);
//
// Over ws:// and wss:// (TLS) each stream has its own connection. Over tcp:// (ZeroMQ) all streams
// share one. If a connection is lost, its streams continue over another one (client_event::Resumed,
// ClientSettings::resume). Streams that cannot be resumed are lost; the next stream that is opened
// connects again.
//
// The client's thread owns the connections and shares two queues with each stream: one of input,
// one of events. Receive results while you send: if the queue of events is full, the stream is held
// up, and no other. Over ws://, its connection is not read then. Over tcp://, its frames are not
// sent; results of frames that the service already has are still queued.
//
// Thread-safe. Streams may outlive the client: they are lost, and their calls throw ConnectionLost.
// The destructor waits only for a host name that is being resolved.
class Client {
 public:
  // `url` is "ws://HOST:PORT", "wss://HOST:PORT" or "tcp://HOST:PORT". Connects when a stream is
  // opened. Throws std::invalid_argument for another URL and for an access that cannot be used
  // (with tcp://, all but a token), std::system_error if there is no free descriptor or thread.
  explicit Client(const std::string& url, const ClientSettings& settings = {},
                  const ServiceAccess& access = {});
  ~Client();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;

  // Opens a stream and waits for the answer of the service. Throws StreamRefused or ConnectionLost.
  ClientStream open(const StreamRequest& request = {});
  // The same without waiting: the stream's first event is `Opened`, or its next() throws.
  ClientStream start(const StreamRequest& request = {});

  // For event loops, which must not wait in a stream. The descriptor is readable while changed()
  // has a number. The client owns it. Throws std::system_error if there is no free descriptor.
  int descriptor();
  // The numbers of the streams that have changed, each once: the last try_next() had no event or
  // the last try_send() was false, and this may have changed, or the stream has ended. Changes are
  // recorded from the first call of descriptor() on.
  std::vector<std::uint64_t> changed();

 private:
  std::unique_ptr<class ClientThread> thread_;
};

}  // namespace millrace
