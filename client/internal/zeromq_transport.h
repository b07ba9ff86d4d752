// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/ring.h"
#include "client/client.h"
#include "client/internal/transport.h"
#include "client/internal/zeromq_link.h"
#include "client/internal/zeromq_stream.h"
#include "schemas/client_codec.h"
#include "transport/websocket/client.h"

namespace millrace {

// Streams over ZeroMQ, which share one connection. open() connects if there is no connection. When
// the connection ends, the streams that can be resumed continue together over the next one, and the
// others are lost. The connection is always read, even if users take no events: otherwise libzmq
// would miss the service's heartbeats and end the connection. A stream therefore never waits for
// the user of another one. Confined to the client's thread.
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
  // A stream, from open() until it is over.
  struct Stream : ZeromqStream {
    Stream(ZeromqTransport& transport, std::shared_ptr<StreamPipe> its_pipe, StreamRequest request);

    Timer timer;
    Time timer_due = Time::max();  // Time::max(): the timer does not run
    bool is_queued = false;        // in to_send_
  };

  void connect(Duration limit);
  void turn();
  bool receive();
  void handle(Bytes message);
  void send();
  bool send(Stream& stream);
  void enqueue(Stream& stream);
  void settle(Stream& stream);
  void start_timer(Stream& stream);
  void expire(std::uint64_t number);
  template <class Check>
  void repeat(Timer& timer, Duration interval, Check check);
  void lose_connection(const std::string& reason);

  const Executor executor_;
  const ServiceUrl service_;
  const std::string token_;
  const ClientSettings& settings_;
  client_protocol::Encoder encoder_;
  client_protocol::Decoder decoder_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Stream>> streams_;
  bool resumes_;                       // false once the service has refused `resume`
  Ring<std::uint64_t> to_send_;        // numbers of streams that may have a message
  Timer keepalive_timer_, ack_timer_;  // run while there is a link
  Time heard_{};                       // when the last message was received
  std::unique_ptr<ZeromqLink> link_;
};

}  // namespace millrace
