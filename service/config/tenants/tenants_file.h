// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "transport/access/tenant_list.h"

namespace millrace {

// Reads the tenants of a text in TOML (docs/configuration.md). The error is one line like
// `file:line: key 'tenant.name': what is allowed`, and repeats no value: it may have a token by
// mistake. `file` is the name in messages.
Result<TenantList, std::string> parse_tenants(std::string_view text, const std::string& file);

// The same for a regular file of at most 16 MiB.
Result<TenantList, std::string> read_tenants(const std::string& file);

}  // namespace millrace
