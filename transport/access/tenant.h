// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <string>
#include <utility>

#include "base/budget.h"
#include "base/rates/shared_rate.h"
#include "transport/access/tenant_rule.h"

namespace millrace {

// A tenant while the service runs: its limits, and what its streams on all threads use of them. A
// reload changes the limits, and not what is used.
//
// Thread-safe.
class Tenant {
 public:
  explicit Tenant(std::string name)
      : name_(std::move(name)), prefix_(name_ == default_tenant ? "" : name_ + '/') {}

  void set_limits(const TenantRule& rule) {
    streams.set_limit(rule.streams);
    opens.set_rule(rule.opens);
    signal.set_rule(rule.signal);
  }
  void lift_limits() {
    streams.set_limit(no_limit);
    opens.set_rule({});
    signal.set_rule({});
  }

  const std::string& name() const { return name_; }
  // Precedes the ids of its streams in their names: "NAME/", and nothing for the default tenant.
  const std::string& prefix() const { return prefix_; }

  Budget streams{no_limit};  // 1 for each stream, until its last row is done
  SharedRate opens;          // streams that are opened
  SharedRate signal;         // seconds of signal that its streams receive

 private:
  static constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

  const std::string name_;
  const std::string prefix_;
};

}  // namespace millrace
