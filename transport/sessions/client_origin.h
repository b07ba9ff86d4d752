// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "transport/addresses/address_limits.h"
#include "transport/addresses/proxy_list.h"
#include "transport/http/message.h"
#include "transport/net/net.h"
#include "transport/sessions/client_gate.h"
#include "transport/websocket/request_error.h"

namespace millrace {

// The address of a client, and its place among the connections of this address. Behind a proxy,
// the address is known later: from a header of the PROXY protocol, or from the request. The place
// is taken as soon as the address is known. Neither a client on loopback nor a proxy for which no
// client is known needs a place. The gate outlives it. Confined to one thread at a time.
class ClientOrigin {
 public:
  // `peer`: of the connection.
  ClientOrigin(const Tcp::endpoint& peer, ClientGate& gate);

  // The address, for the log and for lists: "192.0.2.1:40000", or without a port.
  const std::string& text() const { return text_; }
  // The address is that of a proxy.
  bool is_proxy() const { return is_proxy_; }

  // The proxy has named the client in a header of its connection, or in a request. Requires:
  // is_proxy().
  void set_client(const Tcp::endpoint& client);
  void set_client(const HttpQuery& query);

  // Takes a place unless it has one or needs none. Returns the reason if it gets no place.
  std::optional<AddressLimits::Fault> take_place(Time now);

 private:
  ClientGate* gate_;
  IpAddress address_;
  std::string text_;
  bool is_proxy_;
  bool is_settled_;  // it has a place, or needs none whatever its address is
  AddressLimits::Connection place_;
};

// The answer to a client that gets no place.
RequestError error_of(AddressLimits::Fault fault, std::chrono::seconds retry_after);

}  // namespace millrace
