// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "streams/stream.h"
#include "tests/support/bytes.h"
#include "tests/support/stream_ends.h"
#include "transport/client_peer.h"

namespace millrace::test {

// A stream of s16 frames behind a door: its sink is the peer's, its lane the test. Outlives both.
class PlainStream final : public ClientEnd {
 public:
  PlainStream(const Spec& spec, std::uint64_t limit, ClientOutbox& outbox)
      : pool(FrameBuffer::block_bytes(2, spec.width()), 100, stats.buffer),
        stream({.id = {},
                .type = {},
                .format = SampleFormat::s16le,
                .spec = spec,
                .frames_limit = limit},
               {.rows = lane, .client = *this, .blocks = pool, .stats = stats}),
        outbox_(&outbox) {}

  void result(StreamResult r) override {
    if (outbox_) outbox_->result({.seq = r.row.seq}, r.answer);
  }
  bool full() const override { return outbox_ && outbox_->full(); }
  void flushed(std::uint64_t mark) override {
    if (outbox_) outbox_->flushed(mark);
  }
  void rejected(ErrorCode code, std::string_view message, std::uint64_t frames) override {
    if (outbox_) outbox_->rejected(code, message, frames);
  }
  void warning(ErrorCode code, std::string_view message) override {
    if (outbox_) outbox_->warning(code, message);
  }
  void error(ErrorCode code, std::string_view message) override {
    if (outbox_) outbox_->error(code, message);
  }
  void closed(std::uint64_t frames, std::uint64_t chunks) override {
    if (outbox_) outbox_->closed(frames, chunks, false);
  }
  void resume() override {}
  void has_room() override {
    if (outbox_) outbox_->has_room();
  }
  void disconnect() { outbox_ = nullptr; }

  StreamStats stats;
  CapturedRows lane;
  std::size_t taken = 0, answered = 0;  // rows
  BlockPool pool;
  Stream stream;

 private:
  ClientOutbox* outbox_;
};

class PlainSink final : public StreamSink {
 public:
  explicit PlainSink(PlainStream& plain) : plain_(plain), stream_(plain.stream) {}
  ~PlainSink() override { plain_.disconnect(); }

  void frames(Bytes bytes, Time now) override { stream_.frames(bytes, now); }
  void flush(std::optional<std::uint64_t> mark, Time now) override { stream_.flush(mark, now); }
  void reset(Time now) override { stream_.reset(now); }
  void gap(std::uint64_t frames, Time now) override { stream_.gap(frames, now); }
  void end(Time now) override { stream_.end(now); }
  void refused(ErrorCode code, std::string_view why, Time now) override {
    stream_.fail(code, why, now);
  }
  void retire(Time now) override { stream_.drain(now); }
  void lost(bool clean, Time now) override { clean ? stream_.left(now) : stream_.lost(now); }
  void reject(ErrorCode code, std::string_view why, std::uint64_t frames, Time now) override {
    stream_.refuse(code, why, frames, now);
  }
  bool paused() const override { return stream_.paused(); }
  std::uint64_t room() const override { return stream_.room(); }
  bool overrun() const override { return stream_.overrun(); }
  void tick(Time now) override { stream_.tick(now); }
  void written(std::size_t results, Time now) override { stream_.written(results, now); }

 private:
  PlainStream& plain_;
  Stream& stream_;
};

// Gives each client a stream of this rule that holds so many frames.
class PlainDoor final : public Door {
 public:
  PlainDoor(const Spec& spec, std::uint64_t limit) : spec_(spec), limit_(limit) {}
  Result<std::unique_ptr<StreamSink>, RequestError> open(StreamRequest request,
                                                         ClientOutbox& outbox) override {
    streams.push_back(std::make_unique<PlainStream>(spec_, limit_, outbox));
    outbox.ready("s", request.pipeline, 0, 2);
    return std::unique_ptr<StreamSink>(new PlainSink(*streams.back()));
  }

  std::vector<std::unique_ptr<PlainStream>> streams;  // in the order of their opening

 private:
  const Spec spec_;
  const std::uint64_t limit_;
};

}  // namespace millrace::test
