// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "service/config/toml/config_value.h"
#include "training/keys/dataset_keys.h"

namespace millrace {

// The keys of a function that changes streams.
struct AugmentKeys {
  std::string function;  // MODULE:FUNCTION of Python; empty: streams are not changed
  std::string python;  // empty: that of the virtual environment with the program, otherwise python3
  std::uint32_t processes = 1;
  Duration longest_call = std::chrono::seconds(300);
};

// The table [plan] of the configuration of train-serve.
struct PlanTable {
  training::DatasetKeys keys;
  AugmentKeys augment;
  std::optional<std::uint64_t> epochs;  // nullopt: no end
};

// An error in the table, and its line.
struct PlanTableError {
  int line = 0;
  std::string message;
};

// Reads the keys of a data set, except those that each trainer chooses: rank, world, device,
// prefetch and buffers; also `epochs`, and the keys of `augment`. `streams` may be tables
// [[plan.streams]] with path and frequency. `line` is that of the table.
Result<PlanTable, PlanTableError> read_plan_table(const ConfigTable& table, int line);

}  // namespace millrace
