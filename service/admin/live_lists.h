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

// The lists of live streams and workers, for the admin listener. Each is collected from the threads
// that own its parts, and then kept for 100 ms; all lists together are collected at most 20 times a
// second. The caller waits for up to 250 ms. If a thread does not answer in that time, no list is
// collected for a second. Requests delay neither these threads nor the caller, at any rate.
//
// Confined to one thread, which is none of those.
class LiveLists {
 public:
  // Both outlive it; the threads run.
  LiveLists(std::span<const std::unique_ptr<IoThread>> threads,
            std::span<const std::unique_ptr<Pipeline>> pipelines)
      : threads_(threads), pipelines_(pipelines) {}

  // The answer to "/streams?limit=10&order=held".
  HttpAnswer streams(std::string_view target, Time now);
  HttpAnswer workers(Time now);

 private:
  struct Page {
    HttpAnswer answer;
    Time until{};  // it is kept
  };

  template <class Collect>
  const HttpAnswer& recent(Page& page, Time now, Collect collect);
  Page& page_of(const StreamQuery& query);
  bool is_pipeline(std::string_view name) const;
  HttpAnswer collect_streams(const StreamQuery& query, Time now);
  HttpAnswer collect_workers(Time now);
  HttpAnswer given_up();

  const std::span<const std::unique_ptr<IoThread>> threads_;
  const std::span<const std::unique_ptr<Pipeline>> pipelines_;
  std::deque<std::pair<StreamQuery, Page>> streams_;  // the last few queries
  Page workers_;
  std::deque<Time> collections_;  // of the last second
  Time late_until_{};             // a thread did not answer: nothing is collected before
};

}  // namespace millrace
