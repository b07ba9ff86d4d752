// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "service/admin/stream_walk.h"
#include "service/log/recent_log.h"
#include "transport/http/message.h"
#include "workers/lanes/worker_status.h"

namespace millrace {

// What the admin listener says, as JSON.

// 200 where the process works, otherwise 503 and why it is to be started again.
HttpAnswer alive_page(const std::vector<std::string>& reasons);
// 200 where nothing speaks against taking streams, otherwise 503 and why not.
HttpAnswer ready_page(const std::vector<std::string>& reasons);
// The same for the live page, always with 200: a browser reports other answers as errors.
HttpAnswer status_page(const std::vector<std::string>& reasons, bool draining);
HttpAnswer missing_page();

// The first `query.limit` streams of all threads.
HttpAnswer streams_page(const StreamQuery& query, std::vector<StreamList> parts);

// The workers of a pipeline.
struct WorkerList {
  std::string pipeline;
  std::vector<WorkerStatus> workers;
};
HttpAnswer workers_page(const std::vector<WorkerList>& pipelines);

// The last warnings and errors, the oldest first.
HttpAnswer log_page(RecentLog& log);

}  // namespace millrace
