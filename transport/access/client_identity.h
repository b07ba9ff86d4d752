// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>

#include "transport/access/token.h"

namespace millrace {

// The tenant of a listener whose clients need no token.
struct ListenerTenant {
  std::string name;

  bool operator==(const ListenerTenant&) const = default;
};

// The proof that a client has shown: nothing, a token, of which this is the digest, or that it has
// reached the listener of a tenant. It counts as long as ClientAccess grants something for it.
using Credential = std::variant<std::monostate, TokenDigest, ListenerTenant>;

// A client of one connection. It may open streams as long as its credential counts.
struct ClientIdentity {
  std::string peer{};  // its address, such as "127.0.0.1:40000"; empty if unknown
  Credential credential{};
};

}  // namespace millrace
