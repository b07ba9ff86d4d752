// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/ring.h"
#include "client/client.h"
#include "client/internal/carrier.h"
#include "client/internal/outgoing_stream.h"
#include "client/internal/zeromq_link.h"
#include "schemas/client_codec.h"
#include "transport/websocket/client.h"

namespace millrace {

// Over ZeroMQ: all streams share one connection, which is made when a stream is opened and there is
// none. Its end is the end of all of them. It is read whatever their users take: where it is not,
// libzmq misses the service's heartbeats and ends it. So one stream never waits for another's user.
class ZeromqCarrier final : public Carrier {
 public:
  // `settings` outlive it.
  ZeromqCarrier(Executor executor, ServiceUrl service, const ClientSettings& settings);
  ~ZeromqCarrier() override;

  void open(std::shared_ptr<StreamPipe> pipe, StreamRequest request) override;
  void woken(std::uint64_t stream) override;
  void stop() override;

 private:
  // One of ours, from its opening until we have said End or heard the last of it.
  struct Stream {
    Stream(Executor executor, std::shared_ptr<StreamPipe> its_pipe, StreamRequest request);

    std::shared_ptr<StreamPipe> pipe;
    OutgoingStream outgoing;
    Timer due;                // its opening, or that its user takes what came
    bool is_listed = false;   // in to_send_
    bool is_awaited = false;  // by `due`: too much waits for its user
  };

  void turn();
  bool receive();
  void hear(Bytes message);
  void send();
  bool send(Stream& stream);
  void list(Stream& stream);
  void await_user(Stream& stream);
  void limit(Stream& stream, Time due);
  void expire(std::uint64_t number);
  void give_up(Stream& stream, StreamFailure why);
  void beat();
  void beat_later();
  void lose(const std::string& reason);

  const Executor executor_;
  const ServiceUrl service_;
  const ClientSettings& settings_;
  client_protocol::Encoder encoder_;
  client_protocol::Decoder decoder_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Stream>> streams_;
  Ring<std::uint64_t> to_send_;  // numbers of those that may have something to say
  Timer beat_;                   // while there is a link
  std::unique_ptr<ZeromqLink> link_;
};

}  // namespace millrace
