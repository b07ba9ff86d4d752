// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "recording/format/row_digest.h"
#include "recording/format/stream_meta.h"
#include "recording/writer/page_writer.h"
#include "recording/writer/stream_pen.h"
#include "streams/stream_tap.h"

namespace millrace {

// Records one stream: passes its events and answers to the recorder, and computes the digest of its
// rows. Owned by its stream, and confined to its thread.
//
// A stream that may survive its connection, and that receives nothing, leaves no recording: a load
// balancer may have sent its request to two services.
class StreamRecording final : public StreamTap {
 public:
  // `pages` must outlive it. With `answers`, the answers to the stream's rows and the
  // messages of its workers are recorded too.
  StreamRecording(recording::PageWriter& pages, std::unique_ptr<recording::StreamMeta> meta,
                  bool answers);

  void event(const Event& event, Time arrived, const std::array<Bytes, 2>& frames) override;
  void row(const Row& row) override { digest_.add(row); }
  void answered(std::uint64_t seq, BatchId batch, const Answer& answer) override;
  void message(std::uint64_t number, std::uint64_t seq, const Answer& message) override;
  void closed(StreamClosing why, bool ended) override;

 private:
  struct Held {
    Event event{};
    Time arrived{};
  };

  bool hold(const Event& event, Time arrived);

  recording::PageWriter& pages_;
  std::unique_ptr<recording::StreamPen> pen_;
  recording::RowDigest digest_;
  const bool answers_;
  // Nothing was received so far: the events are the open, and perhaps the size of the first body.
  bool holds_;
  std::array<Held, 2> held_{};
  std::size_t held_events_ = 0;
};

}  // namespace millrace
