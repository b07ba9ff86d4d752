// SPDX-License-Identifier: Apache-2.0
#include "transport/zeromq_peers.h"

#include <utility>
#include <zmq.hpp>

namespace millrace {

namespace {

// Where libzmq keeps the descriptor of a message's connection, as text. Nothing: of a message that
// it held back for want of room. No peer's first one is.
const char* origin_of(ZeromqMessage& message) {
  return zmq_msg_gets(static_cast<zmq_msg_t*>(message.handle()), "__fd");
}

}  // namespace

ZeromqPeers::Peer* ZeromqPeers::find(ZeromqPeer id) {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

ZeromqPeers::Peer* ZeromqPeers::named(std::string_view name) {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &found->second;
}

ZeromqPeers::Peer* ZeromqPeers::speaker(ZeromqMessage& name) {
  Peer* const peer = named(name.text());
  if (!peer) return nullptr;
  const char* const origin = origin_of(name);
  return !origin || peer->origin == origin ? peer : nullptr;
}

ZeromqPeers::Peer& ZeromqPeers::add(ZeromqMessage first, std::optional<Connection> connection) {
  auto& [name, peer] = *by_name_.try_emplace(std::string(first.text())).first;
  peer.id = ZeromqPeer{++last_};
  peer.name = name;
  peer.connection = connection.value_or(0);
  peer.origin = origin_of(first);
  peer.first = std::move(first);
  by_id_.emplace(peer.id, &peer);
  if (connection) by_connection_.emplace(*connection, peer.id);
  return peer;
}

void ZeromqPeers::remove(ZeromqPeer id) {
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return;
  by_name_.erase(by_name_.find(found->second->name));
  by_id_.erase(found);
}

}  // namespace millrace
