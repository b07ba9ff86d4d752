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

// What a client keeps to.
struct ClientSettings {
  std::size_t unsent = 64 << 10;  // bytes of a stream; then sending waits
  std::size_t untaken = 1 << 20;  // bytes of events of a stream that wait to be taken; then it is
                                  // held up until half of them are
  Duration taking = std::chrono::seconds(10);     // of that, and nothing is taken; then it fails as
                                                  // `slow_reader`
  Duration connect = std::chrono::seconds(10);    // until the service has answered
  Duration keepalive = std::chrono::seconds(10);  // of silence; then the service hears we live
  // Over ws:// a stream is lost when the service's host acknowledges none of our bytes for this
  // long; over tcp:// when the service answers no heartbeat, at most 2 s later, and after 30 s
  // of silence at the latest.
  Duration silence = std::chrono::seconds(30);
};

// A process's way to a service: opens streams, sends frames, takes results.
//
//   Client client("ws://127.0.0.1:8080");
//   ClientStream stream = client.open({.pipeline = "vad"});
//   stream.send(frames);  stream.end();
//   while (auto event = stream.next())
//     if (const auto* result = std::get_if<client_event::Result>(&*event)) use(*result);
//
// Over ws:// each stream is a connection; over tcp:// (ZeroMQ) all of them share one, which is made
// anew where it was lost: what was open then is lost with it, on either way.
//
// A thread of its own has the connections; each stream shares bounded queues with it. Results have
// to be taken while frames are sent: a full queue of them holds up its stream, and no other. Over
// ws:// its connection is not read then; over tcp:// its frames are not sent, and where twice as
// much waits nevertheless it fails at once.
//
// Thread-safe. Streams may outlive it: they are lost, and calls of them that are running say so.
// Destroying it waits for nothing but a name that is being looked up.
class Client {
 public:
  // "ws://HOST:PORT" or "tcp://HOST:PORT". Connects to nobody yet. Throws std::invalid_argument for
  // what is none of them, std::system_error where there are no descriptors or threads left.
  explicit Client(const std::string& url, const ClientSettings& settings = {});
  ~Client();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;

  // Opens a stream, and waits until it is. Throws StreamRefused or ConnectionLost.
  ClientStream open(const StreamRequest& request = {});
  // Does not wait: `Opened` is the stream's first event, or a refusal what its next() throws.
  ClientStream start(const StreamRequest& request = {});

  // For event loops, which never wait in a stream. The descriptor is readable while changed() has
  // something to tell: the numbers of streams of which try_next() may give something, or try_send()
  // take something, that did not when it was last called.
  int descriptor();
  std::vector<std::uint64_t> changed();

 private:
  std::unique_ptr<class ClientThread> thread_;
};

}  // namespace millrace
