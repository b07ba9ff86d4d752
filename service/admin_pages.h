// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"
#include "service/stream_table.h"
#include "transport/http_message.h"
#include "workers/worker_book.h"

namespace millrace {

// What the admin listener says, as JSON.

// 200 where the process works, otherwise 503 and why it is to be started again.
HttpAnswer alive_page(const std::vector<std::string>& reasons);
// 200 where nothing speaks against taking streams, otherwise 503 and why not.
HttpAnswer ready_page(const std::vector<std::string>& reasons);
HttpAnswer missing_page();

// A live stream.
struct StreamLine {
  std::string name;
  std::string pipeline;
  std::uint64_t frames = 0;  // position
  Duration signal{};         // the same as a time
  Duration age{};
  Duration held{};  // signal that the service has and no worker is done with
  bool paused = false;
  bool connected = true;  // its client is still there
  std::string peer{};     // the client's address; empty if it is not known
};

// Streams of which at most `most_streams` have a line: those that were opened first.
struct StreamList {
  std::vector<StreamLine> lines;
  std::size_t total = 0;
};
inline constexpr std::size_t most_streams = 1000;

// Requires: called on the table's thread.
StreamList list_streams(const StreamTable& table, Time now);
// Of all threads.
HttpAnswer streams_page(std::vector<StreamList> parts);

// The workers of a pipeline.
struct WorkerList {
  std::string pipeline;
  std::vector<WorkerStatus> workers;
};
HttpAnswer workers_page(const std::vector<WorkerList>& pipelines);

}  // namespace millrace
