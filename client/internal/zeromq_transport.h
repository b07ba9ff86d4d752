// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/ring.h"
#include "client/client.h"
#include "client/internal/outgoing_stream.h"
#include "client/internal/transport.h"
#include "client/internal/zeromq_link.h"
#include "schemas/client_codec.h"
#include "transport/websocket/client.h"

namespace millrace {

// Streams over ZeroMQ, which share one connection. open() connects if there is no connection. When
// the connection ends, all streams are lost. The connection is always read, even if users take no
// events: otherwise libzmq would miss the service's heartbeats and end the connection. A stream
// therefore never waits for the user of another one. Confined to the client's thread.
class ZeromqTransport final : public Transport {
 public:
  // `settings` must outlive this object.
  ZeromqTransport(Executor executor, ServiceUrl service, std::string token,
                  const ClientSettings& settings);
  ~ZeromqTransport() override;

  void open(std::shared_ptr<StreamPipe> pipe, StreamRequest request) override;
  void woken(std::uint64_t stream) override;
  void stop() override;

 private:
  // A stream, from open() until End is sent or the service has ended it.
  struct Stream {
    Stream(const ZeromqTransport& transport, std::shared_ptr<StreamPipe> its_pipe,
           StreamRequest request);

    std::shared_ptr<StreamPipe> pipe;
    OutgoingStream outgoing;
    Timer timer;               // limit of opening, or of the user's taking of events
    bool is_queued = false;    // in to_send_
    bool awaits_user = false;  // the timer limits a stream that is held up
  };

  void turn();
  bool receive();
  void handle(Bytes message);
  void send();
  bool send(Stream& stream);
  void enqueue(Stream& stream);
  void await_user(Stream& stream);
  void start_timer(Stream& stream, Time due);
  void expire(std::uint64_t number);
  void fail(Stream& stream, StreamFailure why);
  void send_keepalives();
  void schedule_keepalives();
  void lose_connection(const std::string& reason);

  const Executor executor_;
  const ServiceUrl service_;
  const std::string token_;
  const ClientSettings& settings_;
  client_protocol::Encoder encoder_;
  client_protocol::Decoder decoder_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Stream>> streams_;
  Ring<std::uint64_t> to_send_;  // numbers of streams that may have a message
  Timer keepalive_timer_;        // runs while there is a link
  std::unique_ptr<ZeromqLink> link_;
};

}  // namespace millrace
