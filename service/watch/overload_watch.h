// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "monitoring/service_stats.h"
#include "service/log/log.h"
#include "service/watch/memory_use.h"
#include "service/watch/overload.h"
#include "transport/net/net.h"

namespace millrace {

// Checks the memory of the process four times a second and chooses the memory-pressure action.
// Confined to one thread, that of the log. Log and stats must outlive it.
class OverloadWatch {
 public:
  // Called after every check that could read the memory use, with the bytes that may be used until
  // the next one.
  using Apply = std::function<void(Overload, std::uint64_t spare)>;

  OverloadWatch(Log& log, ServiceStats& stats, Apply apply);

  // Runs as long as the executor.
  Task<> watch(Executor executor);

 private:
  void check();
  void evaluate(MemoryUse use);
  void report_unknown(std::string_view why);
  void change(Overload now);

  Log& log_;
  ServiceStats& stats_;
  const Apply apply_;
  MemoryPressure pressure_;
  Overload level_ = Overload::none;
  bool known_ = true;
  Cooldown trim_;
};

}  // namespace millrace
