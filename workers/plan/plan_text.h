// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/companion.h"

namespace millrace {

inline constexpr std::size_t max_companions = 64;
// Limit on the bytes of a companion for one frame.
inline constexpr std::size_t max_companion_frame = std::size_t{1} << 20;

// The content of Welcome::plan.
struct PlanText {
  std::string origin;       // a JSON object: the inputs of the plan; equal text, equal batches
  std::uint64_t epoch = 0;  // the trainer's epoch, and its steps
  std::uint64_t steps = 0;
  std::optional<std::uint64_t> epochs = {};  // the plan ends after them; nullopt: it has no end
  std::uint32_t slots = 0;                   // 0: no state is carried
  std::vector<CompanionFormat> companions = {};
  // Several servers share the slots. False: servers on one machine give their steps in turn,
  // because to join the parts of a batch would take longer than to read its rows.
  bool shares_slots = true;
  bool operator==(const PlanText&) const = default;
};

// As a JSON object. Requires: `origin` is one.
std::string to_json(const PlanText& plan);
// Nullopt if `json` is no such object, if its companions exceed the limits, or if its origin lacks
// the number of streams, `streams`.
std::optional<PlanText> read_plan(std::string_view json);

}  // namespace millrace
