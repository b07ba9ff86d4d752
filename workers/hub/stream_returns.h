// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "base/returned.h"
#include "batcher/batch.h"
#include "schemas/worker_messages.h"
#include "workers/hub/mailbox.h"
#include "workers/hub/worker_log.h"
#include "workers/lanes/lanes.h"
#include "workers/lanes/stats.h"

namespace millrace {

// The mailbox of a thread on which streams live, for messages from the lanes.
using ReturnBox = Mailbox<Returned>;

// The identity of a stream, and the mailbox for its returned rows.
struct StreamIntro {
  StreamId id{};
  std::string name;
  std::string options;           // the client's JSON object, or empty
  ReturnBox* returns = nullptr;  // must outlive the hub's run
};

// The streams of a pipeline, with their names and the mailboxes for their returned rows. Confined
// to the pipeline's home thread.
class StreamReturns {
 public:
  // `stats` and `log` must outlive it.
  StreamReturns(LaneStats& stats, const WorkerLog& log) : stats_(stats), log_(log) {}

  void open(StreamIntro intro);
  const std::string& name(StreamId stream) const { return streams_.at(stream).name; }
  // The entries of a message to a worker for the streams of `rows`.
  std::vector<worker_protocol::OpenedStream> opened(std::span<const Lanes::Opened> rows) const;
  // Sends the returned rows to the streams' threads, and removes the streams that are gone. Counts
  // and logs answers. Changes the options of streams by the messages that done rows have carried:
  // those of other rows go with their row. Clears these parts of `events`.
  void send(LaneEvents& events);

 private:
  void apply(const StreamPosts& messages, StreamIntro& stream);
  void count(const RowDone& done, const StreamIntro& stream);

  LaneStats& stats_;
  const WorkerLog& log_;
  std::unordered_map<StreamId, StreamIntro> streams_;
};

}  // namespace millrace
