// SPDX-License-Identifier: Apache-2.0
#include "transport/access/client_access.h"

#include <algorithm>
#include <utility>

#include "transport/access/presented_token.h"

namespace millrace {
namespace {

constexpr std::string_view no_token = "a token is required, such as Authorization: Bearer TOKEN";
constexpr std::string_view not_accepted = "the token is not accepted";

}  // namespace

bool Grant::allows(std::string_view pipeline) const {
  return !pipelines || std::ranges::find(*pipelines, pipeline) != pipelines->end();
}

ClientAccess::ClientAccess(WallClock wall_clock)
    : wall_clock_(wall_clock),
      default_(live(std::string(default_tenant))),
      state_(std::make_shared<const State>()) {}

AccessRules ClientAccess::rules() const { return state_.get()->rules; }

Tenant& ClientAccess::live(const std::string& name) {
  return tenants_.try_emplace(name, name).first->second;
}

void ClientAccess::replace(AccessRules rules) {
  State state{std::move(rules)};
  if (state.rules.tenants)
    for (const TenantRule& rule : state.rules.tenants->tenants())
      state.live.push_back(&live(rule.name));
  auto made = std::make_shared<const State>(std::move(state));
  default_.lift_limits();
  for (std::size_t i = 0; i < made->live.size(); ++i)
    made->live[i]->set_limits(made->rules.tenants->tenants()[i]);
  state_.replace(std::move(made));
}

// Grants by the rules of one state.
struct ClientAccess::Granting {
  using Granted = Result<Grant, std::string_view>;

  const State& state;
  Tenant& default_live;
  const Duration now;

  Granted operator()(std::monostate) const {
    if (state.needs_token()) return no_token;
    return Grant{.tenant = &default_live};
  }
  Granted operator()(const TokenDigest& digest) const {
    if (!state.needs_token()) return Grant{.tenant = &default_live};
    const auto& [tokens, tenants] = state.rules;
    if (const auto found = tenants ? tenants->find(digest) : std::nullopt) {
      Grant granted = of_tenant(found->tenant);
      granted.until = found->token->until;
      if (granted.until && now >= *granted.until) return std::string_view("the token has expired");
      return granted;
    }
    if (tokens && tokens->accepts(digest)) return of_tenant(default_tenant);
    return not_accepted;
  }
  Granted operator()(const ListenerTenant& listener) const { return of_tenant(listener.name); }

  Grant of_tenant(std::size_t index) const {
    return {.tenant = state.live[index],
            .pipelines = state.rules.tenants->tenants()[index].pipelines};
  }
  Granted of_tenant(std::string_view name) const {
    const auto& tenants = state.rules.tenants;
    if (const auto index = tenants ? tenants->find(name) : std::nullopt) return of_tenant(*index);
    if (name != default_tenant) return not_accepted;
    return Grant{.tenant = &default_live};
  }
};

Result<Grant, std::string_view> ClientAccess::grant(const Credential& credential) const {
  const auto state = state_.get();
  return std::visit(Granting{*state, default_, wall_clock_()}, credential);
}

Result<Credential, std::string_view> ClientAccess::identify(std::string_view token) const {
  const auto state = state_.get();
  if (!state->needs_token()) return Credential();
  if (token.empty()) return no_token;
  if (token.size() > longest_token) return std::string_view("the token is longer than 4096 bytes");
  const Credential shown = digest_of(token);
  const auto granted = std::visit(Granting{*state, default_, wall_clock_()}, shown);
  if (!granted) return granted.error();
  return shown;
}

Result<Credential, std::string_view> ClientAccess::identify(const HttpQuery& query) const {
  if (!state_.get()->needs_token()) return Credential();
  const auto token = presented_token(query);
  if (token) return identify(*token);
  return std::string_view(token.error() == TokenFault::two_fields
                              ? "the request has two fields Authorization"
                              : "the request has two different tokens");
}

}  // namespace millrace
