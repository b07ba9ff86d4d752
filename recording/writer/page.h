// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "base/bytes.h"
#include "base/event.h"
#include "base/time.h"
#include "recording/format/stream_meta.h"
#include "schemas/slices/slice.h"

namespace millrace::recording {

// The head of a record of a page. `bytes` bytes follow it: frames, a part of an answer, message
// or text, a Skip, or StreamTotals.
struct PageRecord {
  enum class Kind : std::uint8_t {
    opened,   // the first record of a stream; Page::opened[count] is its meta
    event,    // `what` is an Event::Kind
    answer,   // to the row `count` in the batch `number`; `what` is an Answer::Kind
    message,  // number `number` of a worker, whose newest row was `count`; `what` is an
              // Answer::Kind
    skip,     // events before this record were dropped
    closed,   // the last record of a stream
  };

  std::uint64_t stream = 0;
  std::int64_t at = 0;      // event: when it was read
  std::uint64_t count = 0;  // event: Event::count; answer, message: the row
  // event: its mark, if it has one; open: its rows; answer: the batch; message: its number
  std::uint64_t number = 0;
  std::uint32_t bytes = 0;
  Kind kind = Kind::opened;
  std::uint8_t what = 0;
  Cause cause = Cause::client;
  bool has_mark = false;
  bool first = true;  // answer, message, event with a text: the first part of it
  bool last = true;   // the same: the last part of it
};

// Where a stream continues after events that were dropped.
struct Skip {
  std::uint64_t next_event = 0;  // number of the next event
  std::uint64_t position = 0;    // the position before it
  std::uint32_t size = 0;        // the size of bodies before it; 0: that of the rule
  DropReason reason{};
};

// A page of the queue to the recorder: records of the streams of one io thread, in order. The
// memory belongs to the pool. Confined to one thread at a time: a page is handed over whole.
class Page {
 public:
  static constexpr std::size_t head = sizeof(PageRecord);

  Page(MutableBytes memory, std::size_t thread) : memory_(memory), thread_(thread) {}

  bool empty() const { return used_ == 0; }
  // Bytes that the next record may have; nullopt: not even its head has room.
  std::optional<std::size_t> room() const;
  // Adds a record and returns the memory of its bytes. Requires: record.bytes <= room().
  std::byte* add(const PageRecord& record);
  // The record added last; null if the page is empty. It can grow by at most spare() bytes:
  // grow() returns their memory.
  PageRecord* last() { return empty() ? nullptr : head_at(last_); }
  std::size_t spare() const { return memory_.size() - used_; }
  std::byte* grow(std::size_t bytes);
  // Removes all records. The memory keeps its content.
  void clear();

  // Calls `visit` with each record and its bytes, in order.
  template <class Visit>
  void read(const Visit& visit) {
    for (std::size_t at = 0; at < used_;) {
      const PageRecord& record = *head_at(at);
      visit(record, Bytes(memory_).subspan(at + head, record.bytes));
      at = aligned(at + head + record.bytes);
    }
  }

  MutableBytes memory() const { return memory_; }
  std::size_t thread() const { return thread_; }  // index of the io thread that owns the page

  std::vector<std::unique_ptr<StreamMeta>> opened;  // the streams that begin in this page
  std::optional<Time> begun;                        // when its first event was written

 private:
  static std::size_t aligned(std::size_t at) { return (at + 7) & ~std::size_t{7}; }
  PageRecord* head_at(std::size_t at) const {
    return reinterpret_cast<PageRecord*>(memory_.data() + at);
  }

  MutableBytes memory_;
  std::size_t thread_;
  std::size_t used_ = 0;  // not aligned: the last record may grow
  std::size_t last_ = 0;
};

static_assert(std::is_trivially_copyable_v<PageRecord> && sizeof(PageRecord) == 48);
static_assert(alignof(PageRecord) == 8);

}  // namespace millrace::recording
