// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/time.h"
#include "service/io_thread.h"
#include "service/pipeline.h"
#include "transport/http_message.h"

namespace millrace {

// The lists of live streams and workers, for the admin listener. Each is collected from the threads
// that own its parts, at most ten times a second. The caller waits for them for up to 250 ms. If
// one does not answer, the refusal is kept for a second: requests hold up neither the threads nor
// the caller, however many come.
//
// Confined to one thread, which is none of those.
class LiveLists {
 public:
  // Both outlive it; the threads run.
  LiveLists(std::span<const std::unique_ptr<IoThread>> threads,
            std::span<const std::unique_ptr<Pipeline>> pipelines)
      : threads_(threads), pipelines_(pipelines) {}

  HttpAnswer streams(Time now);
  HttpAnswer workers(Time now);

 private:
  struct Page {
    HttpAnswer answer;
    Time until{};  // it is kept
  };

  // The page as it is, or as `collect` makes it.
  static HttpAnswer recent(Page& page, Time now, const std::function<HttpAnswer()>& collect);

  const std::span<const std::unique_ptr<IoThread>> threads_;
  const std::span<const std::unique_ptr<Pipeline>> pipelines_;
  Page streams_, workers_;
};

}  // namespace millrace
