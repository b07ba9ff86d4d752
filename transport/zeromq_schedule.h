// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>

#include "base/ring.h"
#include "base/time.h"
#include "transport/zeromq_router.h"

namespace millrace {

// Which peers a router has to look at again, and when: those that had no room, those whose
// connection has ended, and among them those that cannot be told anything any more and of which
// something may be left to be heard; and when it sweeps for connections that say nothing.
//
// While somebody has no room or has ended, libzmq tells of no change: what it has to say of a peer
// may be taken in by a send to another, and then no descriptor tells of it. So they are looked at
// every `second_look`.
//
// It has no clock and no socket. A peer that is gone for good need not be taken out: the visits are
// told of it once more. Confined to one thread.
class ZeromqSchedule {
 public:
  static constexpr std::chrono::milliseconds second_look{10};
  static constexpr std::chrono::milliseconds sweep{200};

  // What a turn of receiving came to. libzmq gives out messages of all connections in turn: whoever
  // has one is heard before more than `round` were, which is as many as peers and connections.
  struct Turn {
    bool all = false;  // that had arrived was received
    std::uint64_t round = 0;
  };

  // A message was received, of whom.
  void heard(ZeromqPeer peer);
  // It had no room.
  void full(ZeromqPeer peer) { full_.push_back(peer); }
  // Its connection has ended.
  void ended(ZeromqPeer peer) { ended_.push_back(peer); }

  // Those that had no room: once each, whatever they answer, and not at every turn, for there may
  // be many. `offer` may say full() again.
  template <class Offer>
  void offer_room(Time now, Offer offer) {
    if (full_.empty() || now < offer_at_) return;
    offer_at_ = now + second_look;
    for (std::size_t left = full_.size(); left > 0; --left) offer(full_.pop_front());
  }

  // Those whose connection has ended, before a turn of receiving. `is_unreachable`: libzmq takes
  // nothing for it any more, and so all that it sent is there to be received.
  template <class IsUnreachable>
  void find_unreachable(IsUnreachable is_unreachable) {
    for (std::size_t left = ended_.size(); left > 0; --left) {
      const ZeromqPeer peer = ended_.front();
      const bool gone = is_unreachable(peer);
      if (gone) unreachable_.insert_or_assign(peer, received_);
      ended_.pop_front();  // once it is kept there: what throws above loses nobody
      if (!gone) ended_.push_back(peer);
    }
  }

  // The unreachable of which everything was heard, after that turn.
  template <class Forget>
  void forget_unreachable(const Turn& turn, Forget forget) {
    for (auto at = unreachable_.begin(); at != unreachable_.end();) {
      if (!is_round_since(at->second, turn)) {
        ++at;
        continue;
      }
      const ZeromqPeer peer = at->first;
      at = unreachable_.erase(at);
      forget(peer);
    }
  }

  // Whether connections that say nothing are looked for now: each `sweep` at most, and when whoever
  // has a message was heard since the last time.
  bool sweeps(Time now, const Turn& turn);

  // Somebody has to be looked at soon.
  bool is_unsettled() const { return !full_.empty() || !ended_.empty(); }
  // When a timer has to go off, if that is sooner than was said before.
  std::optional<Time> alarm(Time now, bool unsettled);
  // It did.
  void went_off() { alarm_ = Time::max(); }

 private:
  bool is_round_since(std::uint64_t received, const Turn& turn) const {
    return turn.all || received_ - received > turn.round;
  }

  Ring<ZeromqPeer> full_, ended_;
  std::map<ZeromqPeer, std::uint64_t> unreachable_;  // how many had come when it was heard last
  std::uint64_t received_ = 0;                       // messages, of anybody
  std::uint64_t swept_ = 0;                          // how many had come at the last sweep
  Time sweep_at_{}, offer_at_{};
  Time alarm_ = Time::max();
};

}  // namespace millrace
