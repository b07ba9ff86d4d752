// SPDX-License-Identifier: Apache-2.0
#include "transport/addresses/address_limits.h"

#include <iterator>

namespace millrace {
namespace {

// An IPv6 network /64, or an IPv4 address as one in the range of multicast, which no host has.
std::uint64_t key_of(const IpAddress& address) {
  const IpAddress plain = unmapped(address);
  if (plain.is_v4()) return 0xffff'ffff'0000'0000 | plain.to_v4().to_uint();
  const auto bytes = plain.to_v6().to_bytes();
  std::uint64_t key = 0;
  for (std::size_t i = 0; i < sizeof key; ++i) key = key << 8 | bytes[i];
  return key;
}

}  // namespace

Result<AddressLimits::Connection, AddressLimits::Fault> AddressLimits::connect(
    const IpAddress& address, Time now) {
  if (!rule_.limits()) return Connection();
  std::lock_guard lock(mutex_);
  const std::uint64_t key = key_of(address);
  forget_some(now);
  Entry& entry = entries_[key];
  if (rule_.connections > 0 && entry.connections >= rule_.connections) return Fault::connections;
  if (!entry.opens.try_take(rule_.opens, now)) return Fault::opens;
  if (!accepts_.try_take(rule_.accepts, now)) return Fault::accepts;
  ++entry.connections;
  return Connection(*this, key);
}

void AddressLimits::end(std::uint64_t key) {
  std::lock_guard lock(mutex_);
  --entries_.find(key)->second.connections;
}

// More than a new connection adds.
void AddressLimits::forget_some(Time now) {
  auto at = entries_.lower_bound(next_);
  for (int i = 0; i < 4 && at != entries_.end(); ++i) {
    const bool is_used = at->second.connections > 0 || !at->second.opens.is_full(now);
    at = is_used ? std::next(at) : entries_.erase(at);
  }
  next_ = at == entries_.end() ? 0 : at->first;
}

std::size_t AddressLimits::addresses() const {
  std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace millrace
