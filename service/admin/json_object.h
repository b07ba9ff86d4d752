// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/string_view.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace millrace {

// Builds the text of a JSON object, member by member. Times are decimal seconds, by default with
// three decimals (Boost.JSON would write 8.8E0). Keys are literals. Confined to one thread.
class JsonObject {
 public:
  JsonObject& text(std::string_view key, std::string_view value) {
    return raw(key, boost::json::serialize(boost::json::string_view(value)));
  }
  JsonObject& number(std::string_view key, std::uint64_t value) {
    return raw(key, std::to_string(value));
  }
  // Requires: the value is finite.
  JsonObject& decimal(std::string_view key, double value) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.9g", value);
    return raw(key, digits);
  }
  JsonObject& boolean(std::string_view key, bool value) {
    return raw(key, value ? "true" : "false");
  }
  JsonObject& seconds(std::string_view key, Duration value, int decimals = 3) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.*f", decimals,
                  std::chrono::duration<double>(value).count());
    return raw(key, digits);
  }
  JsonObject& texts(std::string_view key, const std::vector<std::string>& values) {
    return raw(key, serialize(boost::json::array(values.begin(), values.end())));
  }
  // Requires: `value` is JSON.
  JsonObject& raw(std::string_view key, std::string_view value) {
    text_.append(text_.size() > 1 ? ",\"" : "\"").append(key).append("\":").append(value);
    return *this;
  }

  std::string done() const { return text_ + "}"; }

 private:
  std::string text_ = "{";
};

}  // namespace millrace
