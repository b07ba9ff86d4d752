// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "load/streams/histogram.h"

namespace millrace::bench {

void print_heading(std::string_view title);
// Prints a line in microseconds: minimum, quantiles, maximum.
void print_row(std::string_view name, const load::Histogram& times);

// An object of microseconds: {"min_us":1.2,"p50_us":… p90, p99, p999}.
std::string json_of(const load::Histogram& times);

}  // namespace millrace::bench
