// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "commands/train_serve/plan_table.h"
#include "service/config/address.h"
#include "service/config/options.h"

namespace millrace {

// The checked configuration of train-serve; docs/training.md lists the keys.
struct TrainOptions {
  PlanTable plan;
  std::string workers;  // a Unix socket; empty: off
  // For trainers on other machines. Any process that reaches it gets the batches. nullopt: off.
  std::optional<TcpAddress> workers_remote = {};
  TcpAddress admin{"127.0.0.1", 9465};
  std::vector<std::string> names = {};            // host names by which browsers may reach `admin`
  bool plain = false;                             // allows addresses off loopback without TLS
  std::size_t slab_bytes = std::size_t{4} << 30;  // batches of all trainers together
  LogOptions log = {};
};

// `file` is the name in messages.
Result<TrainOptions, ConfigError> parse_train_options(std::string_view text,
                                                      const std::string& file);
Result<TrainOptions, ConfigError> load_train_options(const std::string& path);

}  // namespace millrace
