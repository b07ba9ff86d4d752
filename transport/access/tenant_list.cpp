// SPDX-License-Identifier: Apache-2.0
#include "transport/access/tenant_list.h"

#include <algorithm>
#include <utility>

namespace millrace {

TenantList::TenantList(std::vector<TenantRule> tenants) : tenants_(std::move(tenants)) {
  for (std::size_t i = 0; i < tenants_.size(); ++i)
    for (std::size_t j = 0; j < tenants_[i].tokens.size(); ++j)
      holders_.push_back({tenants_[i].tokens[j].digest, i, j});
  std::ranges::sort(holders_, {}, &Holder::digest);
}

std::optional<std::size_t> TenantList::find(std::string_view name) const {
  const auto found = std::ranges::find(tenants_, name, &TenantRule::name);
  if (found == tenants_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - tenants_.begin());
}

// The time of the search depends on the digest only, and no client can choose a digest.
std::optional<TenantList::Found> TenantList::find(const TokenDigest& digest) const {
  const auto found = std::ranges::lower_bound(holders_, digest, {}, &Holder::digest);
  if (found == holders_.end() || found->digest != digest) return std::nullopt;
  return Found{found->tenant, &tenants_[found->tenant].tokens[found->token]};
}

}  // namespace millrace
