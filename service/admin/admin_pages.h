// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "service/admin/stream_walk.h"
#include "service/log/recent_log.h"
#include "transport/http/message.h"
#include "workers/lanes/worker_status.h"

namespace millrace {

// The JSON answers of the admin listener.

// /livez. `reasons` are those to restart the process: 200 if empty, otherwise 503 with the reasons.
HttpAnswer alive_page(const std::vector<std::string>& reasons);
// /readyz. `reasons` are those to send no streams: 200 if empty, otherwise 503 with the reasons.
HttpAnswer ready_page(const std::vector<std::string>& reasons);
// 404 for an unknown path, with the list of the pages.
HttpAnswer missing_page();

// /streams: the first `query.limit` streams of all threads. `parts` has the list of each thread.
HttpAnswer streams_page(const StreamQuery& query, std::vector<StreamList> parts);

// The workers of a pipeline.
struct WorkerList {
  std::string pipeline;
  std::vector<WorkerStatus> workers;
};
// /workers.
HttpAnswer workers_page(const std::vector<WorkerList>& pipelines);

// /log: the last warnings and errors, the oldest first. Collects new ones from the log.
HttpAnswer log_page(RecentLog& log);

}  // namespace millrace
