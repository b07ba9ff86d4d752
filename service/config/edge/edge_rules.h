// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/rates/rate.h"
#include "transport/addresses/address_limits.h"

namespace millrace {

// The limits per address and per second, which `[limits] profile = "public"` turns on. They have no
// keys: docs/configuration.md lists them.
struct EdgeRules {
  AddressRule addresses = {};
  RateRule messages = {};  // from a WebSocket client
  RateRule controls = {};  // its pings, pongs and closes
  RateRule pace = {};      // seconds of audio, for each stream
};

inline EdgeRules edge_rules(bool is_public) {
  if (!is_public) return {};
  return {
      .addresses = {.connections = 64, .opens = RateRule(20, 40), .accepts = RateRule(200, 400)},
      .messages = RateRule(200, 400),
      .controls = RateRule(20, 50),
      .pace = RateRule(2, 10)};
}

}  // namespace millrace
