// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/budget.h"
#include "service/log.h"
#include "service/pipeline.h"
#include "streams/ends.h"
#include "streams/stream.h"
#include "transport/client_outbox.h"
#include "transport/retry_times.h"

namespace millrace {

// Brings a stream's rows to the hub of its pipeline.
class HubRows final : public RowSink {
 public:
  explicit HubRows(Hub& hub) : hub_(hub) {}
  void add(StreamId stream, ReadyRow row) override { hub_.add(stream, std::move(row)); }

 private:
  Hub& hub_;
};

// A stream between its client's connection and its lane. It lives until its rows are done, its
// connection may be gone before. Confined to its io thread.
class LiveStream final : public ClientEnd {
 public:
  // What it works with on its thread; all of it outlives the stream.
  struct Place {
    Pipeline& pipeline;
    HubRows& rows;
    BlockPool& blocks;
    StreamStats& stats;
    Log& log;
    RetryTimes& retry_times;
  };

  // `connection` is its part of those that the process may have, until its end.
  LiveStream(const StreamSettings& settings, std::string name, Share connection, const Place& place,
             ClientOutbox& outbox);
  LiveStream(const LiveStream&) = delete;
  LiveStream& operator=(const LiveStream&) = delete;

  Stream& stream() { return stream_; }
  const std::string& name() const { return name_; }
  StreamId id() const { return id_; }
  Time opened() const { return opened_; }
  // Its client's address; empty once that is gone, or if it is not known.
  std::string peer() const { return outbox_ ? outbox_->peer() : std::string(); }
  const Pipeline& pipeline() const { return place_.pipeline; }

  // Its client is gone without a word.
  void lost(Time now);
  // The connection and its outbox are there no longer.
  void disconnect();
  bool attached() const { return outbox_ != nullptr; }
  // Bytes that its end would give back: frames, and results that its client has not taken. None
  // where that has been told the end, and no frames where that has ended.
  std::size_t held() const;
  // Memory is short, and it has the most: frames and results that wait are dropped. Not what its
  // client was told last, where it was told the end.
  void evict(Time now);
  // The service will stop: the client receives `goaway`, once, and the stream continues.
  void goaway();
  bool has_goaway() const { return has_goaway_; }
  // The service stops, or the connection is too old: the client receives `goaway` if it has not
  // yet, and the stream ends.
  void drain(Time now);

  void result(StreamResult result) override;
  bool full() const override { return outbox_ && outbox_->full(); }
  void flushed(std::uint64_t mark) override;
  void rejected(ErrorCode code, std::string_view message, std::uint64_t frames) override;
  void warning(ErrorCode code, std::string_view message) override;
  void error(ErrorCode code, std::string_view message) override;
  void closed(std::uint64_t frames, std::uint64_t chunks) override;
  void resume() override;
  void has_room() override;

 private:
  const StreamId id_;
  const std::string name_;
  const Time opened_;
  const Share connection_;
  const Place place_;
  ClientOutbox* outbox_;
  bool has_goaway_ = false, draining_ = false;
  Stream stream_;
};

}  // namespace millrace
