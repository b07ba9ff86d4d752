// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace millrace {

// How many file descriptors the process may have open (RLIMIT_NOFILE). raise_… asks for as many as
// it can have.
std::uint64_t descriptor_limit();
std::uint64_t raise_descriptor_limit();

// How many of them may be sockets of clients. The others are for the admin listener, workers and
// slabs: those must go on whatever clients do.
constexpr std::uint64_t client_sockets(std::uint64_t descriptors) { return descriptors / 2; }

// How many clients can have streams: some sockets are of clients that have not said yet what they
// want, and those that say nothing must leave room.
constexpr std::uint64_t client_streams(std::uint64_t descriptors) {
  const std::uint64_t sockets = client_sockets(descriptors);
  return sockets - std::min<std::uint64_t>(512, sockets / 2);
}

}  // namespace millrace
