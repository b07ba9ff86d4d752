// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

namespace millrace {

// Raises the limit on descriptors as far as possible. If there are too few for `connections`,
// lowers `connections` and returns a sentence with the reason; otherwise returns an empty string.
std::string fit_to_descriptors(std::uint32_t& connections);

// Descriptors that are not available to clients, so that the rest of the service works whatever
// clients do: about 50 for the service itself and 4 for each io thread. A worker on this machine
// takes 1 for its connection, and 1 for its slabs while it attaches. Each worker process takes 1
// for each of its pipelines until it has ended. That covers about 400 workers; further ones compete
// with clients. If the process has less than twice this number, clients get half of its
// descriptors.
inline constexpr std::uint64_t reserved_descriptors = 1024;

// The number of descriptors that may be sockets of clients.
constexpr std::uint64_t client_sockets(std::uint64_t descriptors) {
  return descriptors - std::min(reserved_descriptors, descriptors / 2);
}

// Sockets of clients that have not sent their request yet: clients that never send one must leave
// sockets for others.
inline constexpr std::uint64_t upgrading_sockets = 512;

// The limit on sockets of clients if `connections` of them may have streams.
constexpr std::uint64_t sockets_for(std::uint64_t connections, std::uint64_t descriptors) {
  return std::min(client_sockets(descriptors), connections + upgrading_sockets);
}

// The limit on connections without a stream: the others must leave room for streams.
constexpr std::uint64_t waiting_sockets(std::uint64_t connections) {
  return std::max<std::uint64_t>(1, connections / 2);
}

// The number of clients that can have streams.
constexpr std::uint64_t client_streams(std::uint64_t descriptors) {
  const std::uint64_t sockets = client_sockets(descriptors);
  return sockets - std::min(upgrading_sockets, sockets / 2);
}

// The limit on ZeroMQ connections among the sockets of clients. Each can carry many streams, and
// those without streams must leave half of the sockets to WebSockets.
constexpr std::uint64_t zeromq_connections(std::uint64_t descriptors, std::uint64_t streams) {
  return std::min(streams, sockets_for(streams, descriptors) / 2);
}

// The number of descriptors needed for `streams` clients with streams.
constexpr std::uint64_t descriptors_for(std::uint64_t streams) {
  return std::min(4 * streams, streams + upgrading_sockets + reserved_descriptors);
}

}  // namespace millrace
