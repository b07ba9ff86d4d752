// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

namespace millrace {

// How many file descriptors the process may have open (RLIMIT_NOFILE). raise_… asks for as many as
// it can have.
std::uint64_t descriptor_limit();
std::uint64_t raise_descriptor_limit();

// Raises the limit on descriptors as far as possible. If they do not suffice for `connections`,
// lowers it and returns a sentence that says why. Otherwise the text is empty.
std::string fit_to_descriptors(std::uint32_t& connections);

// What is kept for others than clients, which must go on whatever clients do: some 50 are the
// service's own, and 4 of each io thread. A worker on this machine takes 1 for its connection and,
// with the other workers of its process in the same pipeline, 1 for the process until that is gone;
// while it attaches, 1 for its slabs. That covers about 400 workers; further ones compete with
// clients. Where descriptors are few, clients have half of them.
inline constexpr std::uint64_t reserved_descriptors = 1024;

// How many of them may be sockets of clients.
constexpr std::uint64_t client_sockets(std::uint64_t descriptors) {
  return descriptors - std::min(reserved_descriptors, descriptors / 2);
}

// Sockets of clients that have not said yet what they want: those that say nothing must leave room.
inline constexpr std::uint64_t upgrading_sockets = 512;

// How many sockets of clients there are at most, if `connections` of them may have streams.
constexpr std::uint64_t sockets_for(std::uint64_t connections, std::uint64_t descriptors) {
  return std::min(client_sockets(descriptors), connections + upgrading_sockets);
}

// How many clients can have streams.
constexpr std::uint64_t client_streams(std::uint64_t descriptors) {
  const std::uint64_t sockets = client_sockets(descriptors);
  return sockets - std::min(upgrading_sockets, sockets / 2);
}

// How many of the sockets of clients may be ZeroMQ connections, each of which may carry many
// streams: connections without streams must leave half of the sockets to WebSockets.
constexpr std::uint64_t zeromq_connections(std::uint64_t descriptors, std::uint64_t streams) {
  return std::min(streams, sockets_for(streams, descriptors) / 2);
}

// How many descriptors there have to be for so many.
constexpr std::uint64_t descriptors_for(std::uint64_t streams) {
  return std::min(4 * streams, streams + upgrading_sockets + reserved_descriptors);
}

}  // namespace millrace
