// SPDX-License-Identifier: Apache-2.0
// A file of tenants: either tenants that can be told apart, or a message of one line that begins
// with the file.
#include <set>

#include "schemas/text.h"
#include "service/config/tenants/tenants_file.h"
#include "tests/fuzz/target.h"

namespace millrace {
namespace {

using fuzz::require;

void check_list(const TenantList& list) {
  std::set<std::string> names;
  std::set<TokenDigest> digests;
  for (const TenantRule& tenant : list.tenants()) {
    require(is_tenant_name(tenant.name), "a tenant has a name");
    require(names.insert(tenant.name).second, "of its own");
    require(tenant.streams > 0, "and may have streams");
    for (const TenantToken& token : tenant.tokens) {
      require(digests.insert(token.digest).second, "a token has one tenant");
      require(list.find(token.digest)->token == &token, "and is found");
    }
  }
}

void check(Bytes bytes) {
  const auto tenants = parse_tenants(text_in(bytes), "t.toml");
  if (tenants) return check_list(*tenants);
  require(tenants.error().starts_with("t.toml:"), "a message begins with the file");
  require(is_printable(tenants.error(), 4000), "and is one printable line");
}

}  // namespace
}  // namespace millrace

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  millrace::check(millrace::fuzz::bytes_of(bytes, size));
  return 0;
}
