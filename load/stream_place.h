// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "load/content.h"
#include "load/schedule.h"

namespace millrace::load {

// A stream of the benchmark: which place it holds, and the packet of the place that it begins with.
struct StreamPlace {
  std::uint32_t place = 0;
  std::uint64_t first = 0;
};

// Its name in the run of this name, and back: so the worker knows whose row it sees.
std::string stream_name(std::string_view run, const StreamPlace& stream);
std::optional<StreamPlace> place_of(std::string_view run, std::string_view name);

// What our worker answers to the row of the stream that begins at this frame, a JSON value: no two
// rows of a run have the same.
void write_answer(std::string& out, const StreamPlace& stream, std::uint64_t begin);

// Which stream of a place hung up last, and when (to_wire): for who sees the other end of it.
struct Vanishing {
  std::atomic<std::int64_t> at{};
  std::atomic<std::uint64_t> first{~std::uint64_t{0}};
};

// What all threads of a run have in common.
struct RunFacts {
  const Schedule& schedule;
  const Content& content;
  std::string name;
  bool answered = false;               // each row, by write_answer
  std::vector<Vanishing>& vanishings;  // by place
};

}  // namespace millrace::load
