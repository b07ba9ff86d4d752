// SPDX-License-Identifier: Apache-2.0
#include "service/pipelines/run_until_stopped.h"

#include <new>
#include <stdexcept>
#include <string_view>

namespace millrace {

namespace {

void report(Log& log, std::string_view event, std::string_view why) {
  try {
    log.error(event, {{"why", why}});
  } catch (const std::bad_alloc&) {  // no memory for the line either
  }
}

}  // namespace

void run_until_stopped(net::io_context& context, Log& log) {
  for (;;) {
    try {
      context.run();
      return;
    } catch (const std::bad_alloc&) {
      report(log, "out of memory", "an operation failed");
    } catch (const std::length_error& error) {  // from Beast, if memory is short
      report(log, "connection failed", error.what());
    }
  }
}

}  // namespace millrace
