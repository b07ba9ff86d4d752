// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "commands/access_options.h"
#include "commands/console/command_line.h"
#include "load/load_run.h"

namespace millrace {

// The options of `bench` that determine the load.
struct BenchOptions {
  load::LoadPlan given_plan;
  load::LoadTarget given_target;
  AccessOptions access;
  std::vector<std::string> files;
  std::string packet = "100ms", duration = "10s", warm_up = "1s", jitter = "0ms";
  std::string life, every, commit, phase = "uniform", worker = "none", format;
  std::string speak = "millrace", cut;
  bool resume = false;
  std::optional<double> rate, pipeline_rate;
  std::uint32_t dim = 0;
  pid_t server = 0;

  void add_to(Command& command);
  // Both throw std::invalid_argument; target() also std::runtime_error if a file cannot be read.
  load::LoadPlan plan() const;
  load::LoadTarget target(const load::LoadPlan& plan) const;

 private:
  void add_traffic(Command& command);
  void add_ends(Command& command);
  void set_protocol(load::LoadTarget& target) const;
  void set_worker(load::LoadTarget& target) const;
};

// The time that an option has. Throws std::invalid_argument.
Duration time_of(const std::string& option, const std::string& text);

}  // namespace millrace
