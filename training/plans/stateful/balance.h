// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace::training {

// Streams that were dealt to slots: those of slot i are [begins[i], begins[i + 1]).
struct DealtStreams {
  std::span<std::uint32_t> streams;
  std::span<const std::size_t> begins;
  std::span<const std::uint32_t> steps;  // by the number of a stream
};

// Exchanges streams between long and short slots while this shortens the longest slot, until less
// than a thousandth of the rows is padding. `slot_steps` has the steps of each slot.
void balance(const DealtStreams& dealt, std::vector<std::uint64_t>& slot_steps);

}  // namespace millrace::training
