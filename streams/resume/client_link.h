// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "streams/resume/resumable_stream.h"

namespace millrace {

// A connection's handle of a resumable stream. It passes on the connection's calls until another
// connection has the stream; later calls have no effect. Confined to one thread.
class ClientLink final : public StreamInput {
 public:
  // `epoch`: that of the connection.
  ClientLink(ResumableStream& stream, std::uint32_t epoch)
      : owner_(&stream), stream_(stream.stream_), epoch_(epoch) {}

  // Another connection has the stream, or it is gone.
  void cut() { owner_ = nullptr; }

  void frames(Bytes bytes, Time arrived) override {
    Stream* const stream = used();
    if (!stream) return;
    owner_->expect_result();
    stream->frames(bytes, arrived);
  }
  std::size_t piece(Bytes message) override {
    return owner_ ? stream_->piece(message) : message.size();
  }
  void flush(std::optional<std::uint64_t> mark, Time arrived) override {
    if (Stream* stream = used()) stream->flush(mark, arrived);
  }
  void reset(Time arrived) override {
    if (Stream* stream = used()) stream->reset(arrived);
  }
  void gap(std::uint64_t client_frames, Time arrived) override {
    if (Stream* stream = used()) stream->gap(client_frames, arrived);
  }
  void post(std::string_view data, Time arrived) override {
    if (Stream* stream = used()) stream->post(data, arrived);
  }
  void set(std::string_view options, Time arrived) override {
    if (Stream* stream = used()) stream->set(options, arrived);
  }
  void acknowledge(std::uint64_t n, Time arrived) override {
    if (used()) owner_->acknowledge(n, arrived);
  }
  void end(Time arrived) override {
    if (Stream* stream = used()) stream->end(arrived);
  }
  void reject(ErrorCode code, std::string_view message, std::uint64_t client_frames,
              Time now) override {
    if (Stream* stream = used()) stream->reject(code, message, client_frames, now);
  }
  void reject_command(ErrorCode code, std::string_view message, Time now) override {
    if (Stream* stream = used()) stream->reject_command(code, message, now);
  }
  void fail(ErrorCode code, std::string_view message, Time now) override {
    if (owner_) owner_->fail(code, message, now);
  }
  void drain(Time now) override {
    if (owner_) stream_->drain(now);
  }
  void disconnected(ConnectionEnd how, Time now) override {
    if (ResumableStream* owner = std::exchange(owner_, nullptr)) owner->connection_ended(how, now);
  }
  bool paused() const override { return owner_ && owner_->paused(); }
  std::uint64_t credit() const override { return owner_ ? stream_->credit() : 0; }
  bool overrun() const override { return owner_ && owner_->overrun(); }
  void tick(Time now) override {
    if (owner_) stream_->tick(now);
  }
  void check(Time now) override {
    if (owner_) owner_->check(now);
  }
  bool outlives_connection() const override { return owner_ != nullptr; }
  bool has_ended() const override { return !owner_ || stream_->has_ended(); }
  void written(std::size_t results, Time now) override {
    if (owner_) owner_->written(results, now);
  }
  void release(Time now) override {
    disconnected(ConnectionEnd::lost, now);
    delete this;
  }

 private:
  // The stream that receives something of its client; null if it has another connection.
  Stream* used() {
    if (!owner_) return nullptr;
    if (!std::exchange(was_used_, true)) owner_->used(epoch_);
    return stream_;
  }

  ResumableStream* owner_;
  Stream* const stream_;
  const std::uint32_t epoch_;
  bool was_used_ = false;
};

}  // namespace millrace
