// SPDX-License-Identifier: Apache-2.0
#include "transport/zeromq_peers.h"

#include <utility>

namespace millrace {

ZeromqPeers::Peer* ZeromqPeers::find(ZeromqPeer id) {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

ZeromqPeers::Peer* ZeromqPeers::named(std::string_view name) {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &found->second;
}

ZeromqPeers::Peer& ZeromqPeers::add(ZeromqMessage first, const char* origin,
                                    std::optional<Connection> connection) {
  auto& [name, peer] = *by_name_.try_emplace(std::string(first.text())).first;
  peer.id = ZeromqPeer{++last_};
  peer.name = name;
  peer.connection = connection.value_or(0);
  peer.first = std::move(first);
  peer.origin = origin;
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
