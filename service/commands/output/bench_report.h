// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/object.hpp>
#include <iosfwd>

#include "load/load_run.h"

namespace millrace {

// docs/bench.md says what each member is. Times are microseconds.
boost::json::object to_json(const load::LoadReport& report);

// For people.
void print(std::ostream& out, const load::LoadReport& report);

}  // namespace millrace
