// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "transport/zeromq_connections.h"
#include "transport/zeromq_message.h"
#include "transport/zeromq_router.h"

namespace millrace {

// The peers of a router, by the names that libzmq calls them (their routing ids) and by ours.
// Confined to one thread.
class ZeromqPeers {
 public:
  using Connection = ZeromqConnections::Id;

  struct Peer {
    ZeromqPeer id{};
    std::string_view name;
    Connection connection = 0;  // 0: it had ended before the peer was first heard
    // A part of its first message. As long as we have it, libzmq's description of the connection
    // stays where it is, and tells its messages from those of a later one with the same name.
    ZeromqMessage first;
    const char* origin = nullptr;
    bool told = false;         // the sink was, of it
    bool cut = false;          // nothing is heard of it or sent to it any more
    bool blocked = false;      // something waits until it has room
    bool was_blocked = false;  // it had no room when it was tried last
    bool gone = false;         // nothing can be sent to it
  };

  // Null where there is none.
  Peer* find(ZeromqPeer id);
  Peer* named(std::string_view name);

  // Whose message begins with this part, the name. Null where it is another's than who had it.
  Peer* speaker(ZeromqMessage& name);

  // Requires: nobody has this name. `first` is its first message's first part, the name.
  Peer& add(ZeromqMessage first, std::optional<Connection> connection);
  void remove(ZeromqPeer id);
  std::size_t size() const { return by_id_.size(); }

  // Those whose messages came over this connection; it is forgotten.
  template <class Visit>
  void end(Connection connection, Visit visit) {
    const auto [begin, end] = by_connection_.equal_range(connection);
    for (auto at = begin; at != end; ++at)
      if (Peer* peer = find(at->second)) visit(*peer);
    by_connection_.erase(begin, end);
  }

 private:
  // Looks up names by views of them.
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };

  std::unordered_map<std::string, Peer, Hash, std::equal_to<>> by_name_;
  std::unordered_map<ZeromqPeer, Peer*> by_id_;
  std::unordered_multimap<Connection, ZeromqPeer> by_connection_;
  std::uint64_t last_ = 0;
};

}  // namespace millrace
