// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.h"
#include "base/result.h"
#include "training/contract/plan_options.h"

namespace millrace::training {

// Reads JSON values of keys. The errors name the key, the value and the allowed values.
using Outcome = Result<void, PlanError>;

Outcome read_count(std::string_view key, const boost::json::value& value, std::uint64_t least,
                   std::uint64_t most, std::uint64_t& into);
Outcome read_count(std::string_view key, const boost::json::value& value, std::uint32_t least,
                   std::uint32_t most, std::uint32_t& into);
Outcome read_number(std::string_view key, const boost::json::value& value, double& into);
Outcome read_flag(std::string_view key, const boost::json::value& value, bool& into);
Outcome read_text(std::string_view key, const boost::json::value& value, std::string& into);
// A list of ascending numbers of at least 1.
Outcome read_ascending(std::string_view key, const boost::json::value& value,
                       std::vector<std::uint32_t>& into);

// The error `key = value sentence`.
PlanError wrong(std::string_view key, const boost::json::value& value, std::string_view sentence);
// The error for a key that is not one of `allowed`. It names the nearest of these if one is near.
PlanError unknown(std::string_view key, const std::vector<std::string_view>& allowed);

// The names as "a, b and c".
std::string listed(const std::vector<std::string_view>& names, std::string_view last = " and ");

// A value of an enumeration, by the names that `name` gives its values.
template <class Enum>
Outcome read_named(std::string_view key, const boost::json::value& value,
                   std::string_view (*name)(Enum), auto& into) {
  std::vector<std::string_view> names;
  for (const Enum one : values_of<Enum>()) {
    names.push_back(name(one));
    if (value.is_string() && value.get_string() == names.back()) {
      into = one;
      return {};
    }
  }
  return wrong(key, value, "must be " + listed(names, " or "));
}

}  // namespace millrace::training
