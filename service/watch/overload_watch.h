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

// Looks at the memory of the process four times a second, and says what is to be done for want of
// it. Confined to one thread, whose log it has; log and stats outlive it.
class OverloadWatch {
 public:
  // Called at every look that tells: with the bytes that may be taken until the next.
  using Act = std::function<void(Overload, std::uint64_t spare)>;

  OverloadWatch(Log& log, ServiceStats& stats, Act act);

  // As long as the executor runs.
  Task<> watch(Executor executor);

 private:
  void look();
  void compare(MemoryUse use);
  void unknown(std::string_view why);
  void change(Overload now);

  Log& log_;
  ServiceStats& stats_;
  const Act act_;
  MemoryPressure pressure_;
  Overload level_ = Overload::none;
  bool known_ = true;
  Turn trim_;
};

}  // namespace millrace
