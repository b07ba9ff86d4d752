// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tests/service/pipelines/admission_under_test.h"
#include "transport/access/tenant_list.h"

namespace millrace {

inline TenantToken token_of(std::string_view text) { return {.digest = digest_of(text)}; }

// The tenants a and b, with tokens of these names.
struct Tenants : AdmissionUnderTest {
  Tenants() : AdmissionUnderTest(9) { use({}); }
  void use(TenantRule a) {
    a.name = "a";
    a.tokens = {token_of("a")};
    shared.gate.access.replace({.tenants = std::make_shared<const TenantList>(std::vector{
                                    a, TenantRule{.name = "b", .tokens = {token_of("b")}}})});
  }
  ClientIdentity known(std::string_view text) const {
    return {.credential = *shared.gate.access.identify(text)};
  }
  Client& open_as(std::string_view text, StreamRequest request = {.pipeline = "features"}) {
    if (request.pipeline == "default") request.pipeline = "features";
    return open(std::move(request), known(text));
  }
  // The first token of a expires at this time; the other one does not.
  void expire(std::string_view first, Duration until, std::string_view other = "other") {
    TenantToken expiring = token_of(first);
    expiring.until = until;
    shared.gate.access.replace(
        {.tenants = std::make_shared<const TenantList>(
             std::vector{TenantRule{.name = "a", .tokens = {expiring, token_of(other)}}})});
  }
  // The resume token in a message `ready`.
  static std::string resume_token_in(const std::string& ready) {
    const std::string member = R"("resume":")";
    return ready.substr(ready.find(member) + member.size(), resume_token_size);
  }
  static unsigned status(const Client& client) { return client.error ? client.error->status : 101; }
  std::string names() {
    std::string all;
    admission->table().each([&](const Stream& stream) { all += stream.settings().name + " "; });
    return all;
  }
};

}  // namespace millrace
