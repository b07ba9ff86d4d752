// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/client_origin.h"

#include <utility>

#include "transport/addresses/forwarded_client.h"
#include "transport/net/peer_address.h"

namespace millrace {

ClientOrigin::ClientOrigin(const Tcp::endpoint& peer, ClientGate& gate)
    : gate_(&gate),
      address_(unmapped(peer.address())),
      text_(peer_text(peer)),
      is_proxy_(gate.proxies.contains(address_)),
      is_settled_(!is_proxy_ && address_.is_loopback()) {}

void ClientOrigin::set_client(const Tcp::endpoint& client) {
  address_ = client.address();
  text_ = peer_text(client);
  is_proxy_ = gate_->proxies.contains(address_);
}

void ClientOrigin::set_client(const HttpQuery& query) {
  const IpAddress client = forwarded_client(query, address_, gate_->proxies);
  if (client == address_) return;
  address_ = client;
  text_ = address_.to_string();
  is_proxy_ = gate_->proxies.contains(address_);
}

std::optional<AddressLimits::Fault> ClientOrigin::take_place(Time now) {
  if (is_proxy_ || is_settled_) return std::nullopt;
  auto place = gate_->addresses.connect(address_, now);
  if (!place) return place.error();
  place_ = std::move(*place);
  is_settled_ = true;
  return std::nullopt;
}

RequestError error_of(AddressLimits::Fault fault, std::chrono::seconds retry_after) {
  using Fault = AddressLimits::Fault;
  if (fault == Fault::accepts)
    return {.status = 503,
            .message = "too many new connections",
            .retry_after = retry_after,
            .reason = Refusal::limit_global};
  return {.status = 429,
          .message = fault == Fault::connections ? "too many connections from this address"
                                                 : "too many new connections from this address",
          .retry_after = retry_after,
          .reason = Refusal::limit_address};
}

}  // namespace millrace
