// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/object.hpp>
#include <iosfwd>

#include "load/load_run.h"

namespace millrace {

// The report as JSON; docs/bench.md describes each member. Times are in microseconds.
boost::json::object to_json(const load::LoadReport& report);

// Prints the report for people.
void print(std::ostream& out, const load::LoadReport& report);

}  // namespace millrace
