// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/answer.h"
#include "base/bytes.h"
#include "base/event.h"
#include "base/ids.h"
#include "base/time.h"
#include "recording/format/stream_meta.h"
#include "recording/writer/page_writer.h"
#include "schemas/slices/slice.h"

namespace millrace::recording {

// Writes the records of one stream to the pages of its io thread. While there is no page, it drops
// events. When there is one again, a record states where the stream continues. Frames that were
// read at the same instant become one event, if nothing of another stream is between them.
//
// Confined to one thread. Does not allocate, except for its first record, and does not throw.
class StreamPen {
 public:
  // `pages` must outlive it.
  StreamPen(PageWriter& pages, std::unique_ptr<StreamMeta> meta);

  // `frames` are the values of a `frames` event, or the text of an event that has one.
  void event(const Event& event, Time at, const std::array<Bytes, 2>& frames);
  // An answer or message for which there is no page is dropped: the next slice states it, perhaps
  // without a lost event. Requires: its kind is not `none`.
  void answer(std::uint64_t seq, BatchId batch, const Answer& answer) {
    write(PageRecord::Kind::answer, seq, number(batch), answer);
  }
  void message(std::uint64_t number, std::uint64_t seq, const Answer& message) {
    write(PageRecord::Kind::message, seq, number, message);
  }
  // The stream is over. `totals` without frames and lost: the pen has counted these.
  void close(const StreamTotals& totals);
  // Writes the last record. False: there is no page; call it again later. Requires: close().
  bool finish();

  // True if a record names the stream: the recorder knows it.
  bool named() const { return !meta_; }

 private:
  Page* page_for(std::size_t bytes);
  void write_frames(const Event& event, Time at, const std::array<Bytes, 2>& frames);
  void write(PageRecord::Kind kind, std::uint64_t seq, std::uint64_t number, const Answer& answer);
  bool write_parts(PageRecord record, Bytes data);
  bool name_stream();
  void drop(const Event& event);
  void begin_dropping();
  void count(const Event& event);

  PageWriter& pages_;
  std::unique_ptr<StreamMeta> meta_;  // null once a record has it
  const std::uint64_t stream_;
  const std::size_t frame_bytes_;
  std::uint64_t events_ = 0;
  std::uint64_t begin_ = 0;  // the position of the open
  std::uint64_t position_ = 0;
  std::uint64_t lost_ = 0;  // frames that gaps skipped
  std::uint32_t size_ = 0;  // 0: that of the rule
  std::optional<DropReason> dropping_;
  StreamTotals totals_{};
};

}  // namespace millrace::recording
