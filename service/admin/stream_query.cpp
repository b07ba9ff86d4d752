// SPDX-License-Identifier: Apache-2.0
#include "service/admin/stream_query.h"

#include <algorithm>
#include <array>
#include <vector>

#include "schemas/text.h"
#include "transport/http/query_parameters.h"

namespace millrace {

namespace {

constexpr std::size_t max_echo = 64;  // bytes of a parameter's name in an error

// In the order of StreamOrder.
constexpr std::array<std::string_view, 3> orders{"age", "held", "name"};

// Sets a parameter. Returns the error in its value, or an empty string.
std::string_view set(StreamQuery& query, std::string_view name, const std::string& value) {
  if (name == "limit") {
    const auto limit = number_in<std::uint32_t>(value);
    if (!limit || *limit < 1 || *limit > max_listed)
      return "must be a whole number from 1 to 10000";
    query.limit = *limit;
  } else if (name == "order") {
    const auto order = std::ranges::find(orders, value);
    if (order == orders.end()) return "must be age, held or name";
    query.order = static_cast<StreamOrder>(order - orders.begin());
  } else if (name == "pipeline") {
    if (value.empty()) return "must be the name of a pipeline";
    query.pipeline = value;
  } else if (name == "tenant") {
    if (!is_tenant_name(value)) return "must be the name of a tenant";
    query.tenant = value;
  } else {
    return "no such parameter; allowed are limit, order, pipeline and tenant";
  }
  return {};
}

RequestError parameter_error(std::string_view parameter, std::string_view message) {
  return {.parameter = std::string(parameter.substr(0, max_echo)), .message = std::string(message)};
}

}  // namespace

Result<StreamQuery, RequestError> parse_stream_query(std::string_view target) {
  StreamQuery query;
  std::vector<std::string_view> seen;
  for (const auto& [name, encoded] : parameters_of(target)) {
    if (std::ranges::find(seen, name) != seen.end()) return parameter_error(name, "given twice");
    seen.push_back(name);
    const auto value = percent_decoded(encoded);
    if (!value) return parameter_error(name, "malformed percent-encoding");
    if (const auto problem = set(query, name, *value); !problem.empty())
      return parameter_error(name, problem);
  }
  return query;
}

}  // namespace millrace
