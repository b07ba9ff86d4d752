// SPDX-License-Identifier: Apache-2.0
#include "service/config/descriptors.h"

#include "base/file_descriptor.h"

namespace millrace {

std::string fit_to_descriptors(std::uint32_t& connections) {
  const std::uint64_t descriptors = raise_descriptor_limit();
  const std::uint64_t most = client_streams(descriptors);
  if (connections <= most) return {};
  const std::string wanted = std::to_string(connections);
  const std::string needed = std::to_string(descriptors_for(connections));
  connections = static_cast<std::uint32_t>(most);
  return std::to_string(most) + " instead of " + wanted + " connections: RLIMIT_NOFILE is " +
         std::to_string(descriptors) + " and must be at least " + needed;
}

}  // namespace millrace
