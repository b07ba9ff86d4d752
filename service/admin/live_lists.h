// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "service/admin/stream_query.h"
#include "service/pipelines/io_thread.h"
#include "service/pipelines/pipeline.h"
#include "transport/http/message.h"

namespace millrace {

// The lists of live streams and workers, for the admin listener. Each list is collected from the
// threads that own its parts, and then cached for 100 ms. All lists together are collected at most
// 20 times a second. The caller waits up to 250 ms for the threads. If one does not answer in that
// time, no list is collected for a second. So requests at any rate delay neither the threads nor
// the caller for long.
//
// Confined to one thread, which is not one of those threads.
class LiveLists {
 public:
  // Threads and pipelines must outlive it. Requires: the threads run.
  LiveLists(std::span<const std::unique_ptr<IoThread>> threads,
            std::span<const std::unique_ptr<Pipeline>> pipelines)
      : threads_(threads), pipelines_(pipelines) {}

  // `target` is like "/streams?limit=10&order=held".
  HttpAnswer streams(std::string_view target, Time now);
  HttpAnswer workers(Time now);

 private:
  struct Page {
    HttpAnswer answer;
    Time until{};  // end of its time in the cache
  };

  template <class Collect>
  const HttpAnswer& cached(Page& page, Time now, Collect collect);
  Page& page_of(const StreamQuery& query);
  bool is_pipeline(std::string_view name) const;
  HttpAnswer collect_streams(const StreamQuery& query, Time now);
  HttpAnswer collect_workers(Time now);
  HttpAnswer timed_out();

  const std::span<const std::unique_ptr<IoThread>> threads_;
  const std::span<const std::unique_ptr<Pipeline>> pipelines_;
  std::deque<std::pair<StreamQuery, Page>> streams_;  // the last few queries
  Page workers_;
  std::deque<Time> collections_;  // times of the collections in the last second
  Time paused_until_{};           // no list is collected before it: a thread did not answer
};

}  // namespace millrace
