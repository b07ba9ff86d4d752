// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "load/clients/client_door.h"
#include "schemas/client_codec.h"
#include "schemas/stream_request.h"
#include "transport/websocket/client.h"
#include "transport/zeromq/dealer.h"

namespace millrace::load {

// All streams over one ZeroMQ connection (docs/protocol.md), each with its own credit. A single one
// of them cannot vanish.
class ZeromqDoor final : public ClientDoor {
 public:
  // `request` is that of every stream, but for its name; places are below `places`; a frame has
  // `frame_bytes`. Throws std::runtime_error where the service is not found.
  ZeromqDoor(const ServiceUrl& service, StreamRequest request, std::uint32_t places,
             std::size_t frame_bytes);

  void open(std::uint32_t place, const std::string& name) override;
  [[nodiscard]] bool send(std::uint32_t place, Bytes frames) override;
  void end(std::uint32_t place) override;
  void vanish(std::uint32_t place) override;
  void poll(Time until, ClientSink& sink) override;

 private:
  struct Place {
    std::uint32_t life = 0;  // 0: never opened
    bool open = false;       // or opening
    bool ready = false;
    bool full = false;         // a send found no room
    std::uint64_t at = 0;      // frames sent
    std::uint64_t credit = 0;  // frames that may be sent
  };

  // The client's number of a stream, which is not used twice.
  std::uint64_t number_of(std::uint32_t place) const;
  void give(Bytes message);
  bool bring_out();
  void take(Bytes message, ClientSink& sink);
  Place* find(std::uint64_t number, std::uint32_t& place);
  void end_all(ClientSink& sink);
  void tell_of_room(ClientSink& sink);

  StreamRequest request_;
  const std::size_t frame_bytes_;
  ZeromqDealer dealer_;
  std::vector<Place> places_;
  std::deque<std::string> unsent_;
  bool full_ = false;  // some place waits for the connection itself
  client_protocol::Encoder encoder_;
  client_protocol::Decoder decoder_;
};

}  // namespace millrace::load
