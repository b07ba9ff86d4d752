// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "transport/access/tenant_rule.h"

namespace millrace {

// The tenants of a file, by their names and tokens. Immutable after construction.
class TenantList {
 public:
  // Requires: no two tenants have the same name, and no two tokens the same digest.
  explicit TenantList(std::vector<TenantRule> tenants = {});

  const std::vector<TenantRule>& tenants() const { return tenants_; }
  // The index of the tenant; nullopt if there is no such tenant.
  std::optional<std::size_t> find(std::string_view name) const;

  struct Found {
    std::size_t tenant = 0;  // its index
    const TenantToken* token = nullptr;
  };
  std::optional<Found> find(const TokenDigest& digest) const;

  bool operator==(const TenantList& other) const { return tenants_ == other.tenants_; }

 private:
  struct Holder {
    TokenDigest digest;
    std::size_t tenant = 0, token = 0;  // indices
  };

  std::vector<TenantRule> tenants_;
  std::vector<Holder> holders_;  // ascending
};

}  // namespace millrace
