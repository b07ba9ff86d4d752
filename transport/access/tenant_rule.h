// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/rates/rate.h"
#include "base/time.h"
#include "transport/access/token.h"

namespace millrace {

// The tenant of clients that need no token, and of the tokens in the token file. Its streams have
// their plain names.
inline constexpr std::string_view default_tenant = "default";

struct TenantToken {
  TokenDigest digest{};
  std::optional<Duration> until = {};  // since 1970: refused from then on

  bool operator==(const TenantToken&) const = default;
};

// The tokens, pipelines and limits of a tenant.
struct TenantRule {
  static constexpr std::uint32_t usual_streams = 1000;

  std::string name = {};
  std::vector<TenantToken> tokens = {};
  std::optional<std::vector<std::string>> pipelines = {};  // nullopt: all
  std::uint32_t streams = usual_streams;                   // open at once
  RateRule opens = {};                                     // streams that are opened
  RateRule signal = {};                                    // seconds of signal of all its streams

  bool operator==(const TenantRule&) const = default;
};

}  // namespace millrace
