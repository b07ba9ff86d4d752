// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "service/log/log.h"
#include "service/pipelines/name_book.h"
#include "service/pipelines/pipeline.h"
#include "service/pipelines/stream_permits.h"
#include "streams/frames/block_pool.h"
#include "streams/stats/stats.h"
#include "streams/stream_host.h"
#include "streams/stream_settings.h"
#include "streams/stream_table.h"

namespace millrace {

// The host of one pipeline's streams on one io thread: their shared memory and counters. It passes
// their rows to the pipeline's lanes, writes their notices to the log, and removes them from the
// thread's table. Confined to that thread.
class PipelineStreams final : public StreamHost {
 public:
  // Objects shared by the streams of all pipelines on the thread.
  struct Thread {
    StreamTable& table;
    NameBook& names;  // names of open streams
    StreamPermits& permits;
    Log& log;
  };

  // The pipeline and the objects of `thread` must outlive the streams.
  PipelineStreams(Pipeline& pipeline, const Thread& thread);

  Pipeline& pipeline() { return pipeline_; }
  const StreamStats& stats() const { return stats_; }
  StreamLinks links() { return {*this, blocks_, stats_, chosen_size_, pipeline_.options().pace}; }
  // See BlockPool::allow().
  void allow(std::uint64_t more) { blocks_.allow(more); }

  void add(StreamId stream, ReadyRow row) override { pipeline_.hub().add(stream, std::move(row)); }
  void free_room(StreamId stream, std::uint32_t bytes) override {
    pipeline_.hub().free_room(stream, bytes);
  }
  void abandoned(StreamId stream) override { pipeline_.hub().abandon(stream); }
  void client_lost(std::string_view stream, Time now) override;
  void detached(std::string_view stream, Time now) override;
  void warned(std::string_view stream, std::string_view message) override;
  void failed(std::string_view stream, ErrorCode code, std::string_view message) override;
  void released(Stream& stream) override;

 private:
  Pipeline& pipeline_;
  const Thread thread_;
  StreamStats stats_;
  BlockPool blocks_;
  std::uint32_t chosen_size_ = 0;  // that an adaptive stream chose last; 0: none
};

}  // namespace millrace
