// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/value.hpp>
#include <string_view>

namespace millrace::load {

// Members of JSON values, for messages of services whose form is not checked. All functions are
// pure. `value` may be null or no object.

// Null if there is no such member.
inline const boost::json::value* member(const boost::json::value* value, std::string_view name) {
  const boost::json::object* object = value ? value->if_object() : nullptr;
  return object ? object->if_contains(name) : nullptr;
}

// Empty if the member is no string.
inline std::string_view string_in(const boost::json::value* value, std::string_view name) {
  const boost::json::value* found = member(value, name);
  const boost::json::string* text = found ? found->if_string() : nullptr;
  return text ? std::string_view(*text) : std::string_view();
}

// 0 if the member is no number.
inline double number_in(const boost::json::value* value, std::string_view name) {
  const boost::json::value* found = member(value, name);
  return found && found->is_number() ? found->to_number<double>() : 0;
}

}  // namespace millrace::load
