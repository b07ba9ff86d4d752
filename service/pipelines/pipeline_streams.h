// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/name_book.h"
#include "service/log/log.h"
#include "service/pipelines/pipeline.h"
#include "streams/block_pool.h"
#include "streams/stats.h"
#include "streams/stream_host.h"
#include "streams/stream_settings.h"
#include "streams/stream_table.h"

namespace millrace {

// The streams of one pipeline on one io thread: the memory and the counters that they share, and
// their way to the pipeline's lanes, to the log, and out of the thread's table. Confined to that
// thread.
class PipelineStreams final : public StreamHost {
 public:
  // What the streams of all pipelines on the thread share.
  struct Thread {
    StreamTable& table;
    NameBook& names;  // of open connections
    Log& log;
  };

  // All of it outlives the streams.
  PipelineStreams(Pipeline& pipeline, const Thread& thread);

  Pipeline& pipeline() { return pipeline_; }
  const StreamStats& stats() const { return stats_; }
  StreamLinks links() { return {*this, blocks_, stats_}; }
  // As BlockPool::allow().
  void allow(std::uint64_t more) { blocks_.allow(more); }

  void add(StreamId stream, ReadyRow row) override { pipeline_.hub().add(stream, std::move(row)); }
  void client_lost(std::string_view stream, Time now) override;
  void warned(std::string_view stream, std::string_view message) override;
  void failed(std::string_view stream, ErrorCode code, std::string_view message) override;
  void released(Stream& stream) override;

 private:
  Pipeline& pipeline_;
  const Thread thread_;
  StreamStats stats_;
  BlockPool blocks_;
};

}  // namespace millrace
