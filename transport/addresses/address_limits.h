// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "base/rates/rate.h"
#include "base/result.h"
#include "base/time.h"
#include "transport/addresses/proxy_list.h"

namespace millrace {

struct AddressRule {
  std::uint32_t connections = 0;  // from one address at the same time; 0: no limit
  RateRule opens = {};            // new connections from one address
  RateRule accepts = {};          // new connections from all addresses together

  bool limits() const { return connections > 0 || opens.limits() || accepts.limits(); }
  bool operator==(const AddressRule&) const = default;
};

// The connections of each IPv4 address, and of each IPv6 network /64, because one host has all of
// its addresses. Asked once when a connection is accepted and once when it ends, never for each
// message. Each new connection removes some addresses that have no connection and whose rate is
// full, so that the memory is bounded by the addresses of the last seconds. Clients can choose the
// addresses of networks that they own: a tree has no collisions, unlike a hash table.
//
// Thread-safe.
class AddressLimits {
 public:
  enum class Fault : std::uint8_t {
    connections,  // the address has too many
    opens,        // it opens them too fast
    accepts,      // all addresses together do
  };

  // A counted connection, until it is destroyed. The limits outlive it. Confined to one thread at a
  // time.
  class Connection {
   public:
    Connection() = default;  // is not counted
    Connection(Connection&& other) noexcept
        : of_(std::exchange(other.of_, nullptr)), key_(other.key_) {}
    Connection& operator=(Connection&& other) noexcept {
      std::swap(of_, other.of_);
      std::swap(key_, other.key_);
      return *this;
    }
    ~Connection() {
      if (of_) of_->end(key_);
    }

   private:
    friend class AddressLimits;
    Connection(AddressLimits& of, std::uint64_t key) : of_(&of), key_(key) {}

    AddressLimits* of_ = nullptr;
    std::uint64_t key_ = 0;
  };

  explicit AddressLimits(const AddressRule& rule = {}) : rule_(rule) {}

  // Counts a new connection, or refuses it. A connection that one limit refuses does not count for
  // the limits after it, in their order in AddressRule.
  Result<Connection, Fault> connect(const IpAddress& address, Time now);

  std::size_t addresses() const;  // that are remembered
  const AddressRule& rule() const { return rule_; }

 private:
  struct Entry {
    std::uint32_t connections = 0;
    Rate opens;
  };

  void end(std::uint64_t key);
  void forget_some(Time now);

  const AddressRule rule_;
  Rate accepts_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Entry> entries_;
  std::uint64_t next_ = 0;  // the key from which unused entries are searched
};

}  // namespace millrace
