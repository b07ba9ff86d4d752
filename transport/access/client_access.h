// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/current.h"
#include "base/result.h"
#include "base/time.h"
#include "transport/access/client_identity.h"
#include "transport/access/tenant.h"
#include "transport/access/tenant_list.h"
#include "transport/access/token_list.h"
#include "transport/http/message.h"

namespace millrace {

// The files that say which clients may open streams. Without any of them every client may.
struct AccessRules {
  std::shared_ptr<const TokenList> tokens = nullptr;
  std::shared_ptr<const TenantList> tenants = nullptr;
};

// The rights of a client.
struct Grant {
  Tenant* tenant = nullptr;                                // lives as long as the ClientAccess
  std::optional<std::vector<std::string>> pipelines = {};  // nullopt: all
  std::optional<Duration> until = {};                      // since 1970: nothing from then on

  bool allows(std::string_view pipeline) const;
};

// Decides who a client of the process is, and what it may do. A reload replaces the rules: each
// later call counts by the new ones. A refusal is for people, and has no token.
//
// Thread-safe; the rules are replaced by one thread.
class ClientAccess {
 public:
  // The time since 1970, for tokens that expire. Thread-safe.
  using WallClock = Duration (*)();

  explicit ClientAccess(WallClock wall_clock = [] { return Duration(); });
  ClientAccess(const ClientAccess&) = delete;
  ClientAccess& operator=(const ClientAccess&) = delete;

  AccessRules rules() const;
  // A tenant that the rules no longer have keeps its counts, for the streams that are open.
  void replace(AccessRules rules);

  // The credential that a request, or a token, presents, if something is granted for it. An empty
  // token counts as an absent one.
  Result<Credential, std::string_view> identify(const HttpQuery& query) const;
  Result<Credential, std::string_view> identify(std::string_view token) const;
  // The rights that it gives now.
  Result<Grant, std::string_view> grant(const Credential& credential) const;

 private:
  struct State {
    AccessRules rules;
    std::vector<Tenant*> live{};  // those of rules.tenants, in their order

    bool needs_token() const { return rules.tokens || rules.tenants; }
  };
  struct Granting;

  Tenant& live(const std::string& name);

  const WallClock wall_clock_;
  std::map<std::string, Tenant> tenants_;  // never removed; used by replace() only
  Tenant& default_;
  Current<State> state_;
};

}  // namespace millrace
