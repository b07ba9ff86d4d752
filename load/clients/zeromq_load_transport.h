// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "load/clients/load_transport.h"
#include "schemas/client_codec.h"
#include "schemas/stream_request.h"
#include "transport/websocket/client.h"
#include "transport/zeromq/dealer.h"

namespace millrace::load {

// Streams over one ZeroMQ connection (docs/protocol.md), each with its own credit. A single stream
// cannot be disconnected: disconnect() only ignores its later events. Confined to one thread.
class ZeromqLoadTransport final : public LoadTransport {
 public:
  // `request` has the parameters of every stream, except its name and `token`. Client indices are
  // below `clients`. A frame has `frame_bytes`; 0: each message is a frame. Throws
  // std::runtime_error if the service is not found.
  ZeromqLoadTransport(const ServiceUrl& service, std::string token, StreamRequest request,
                      std::uint32_t clients, std::size_t frame_bytes);

  void open(std::uint32_t client, const std::string& name) override;
  [[nodiscard]] bool send(std::uint32_t client, Bytes frames) override;
  // Does nothing: the load has no commits over ZeroMQ.
  void commit(std::uint32_t, Time) override {}
  void end(std::uint32_t client) override;
  void disconnect(std::uint32_t client) override;
  void poll(Time until, ClientSink& sink) override;

 private:
  struct Stream {
    std::uint32_t generation = 0;  // number of streams of the client until now
    bool open = false;             // opening or open
    bool ready = false;
    bool full = false;         // the last send() was false
    std::uint64_t at = 0;      // frames sent
    std::uint64_t credit = 0;  // frames that may be sent
  };

  // The number of the client's current stream in messages; each stream has another one.
  std::uint64_t number_of(std::uint32_t client) const;
  void enqueue(Bytes message);
  bool flush();
  void handle(Bytes bytes, ClientSink& sink);
  Stream* find(std::uint64_t number, std::uint32_t& client);
  void end_all(ClientSink& sink);
  void report_writable(ClientSink& sink);

  const std::string token_;
  StreamRequest request_;
  const std::size_t frame_bytes_;
  ZeromqDealer dealer_;
  std::vector<Stream> streams_;
  std::deque<std::string> unsent_;
  bool full_ = false;  // a send() was false because the connection was full
  client_protocol::Encoder encoder_;
  client_protocol::Decoder decoder_;
};

}  // namespace millrace::load
