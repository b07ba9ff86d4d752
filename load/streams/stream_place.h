// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "load/streams/content.h"
#include "load/streams/schedule.h"

namespace millrace::load {

// A stream of the benchmark: which place it holds, and the packet of the place that it begins with.
struct StreamPlace {
  std::uint32_t place = 0;
  std::uint64_t first = 0;
  auto operator<=>(const StreamPlace&) const = default;
};

// Its name in the run of this name, and back: so the worker knows whose row it sees.
std::string stream_name(std::string_view run, const StreamPlace& stream);
std::optional<StreamPlace> place_of(std::string_view run, std::string_view name);

// What our worker answers to the row of the stream that begins at this frame, a JSON value: no two
// rows of a run have the same.
void write_answer(std::string& out, const StreamPlace& stream, std::uint64_t begin);

// What all threads of a run have in common.
struct RunFacts {
  const Schedule& schedule;
  const Content& content;
  std::string name;
  bool answered = false;  // each row, by write_answer
};

}  // namespace millrace::load
