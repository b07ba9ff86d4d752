// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "recording/format/stream_meta.h"
#include "recording/writer/page.h"
#include "schemas/slices/slice.h"

namespace millrace::recording {

// A stream that is being recorded, as far as its records were taken, and its next slice.
struct PendingStream : SliceParts {
  StreamMeta meta;

  // After the records so far.
  std::uint64_t next_event = 0;
  std::uint64_t position = 0;
  std::uint32_t size = 0;  // the size of bodies; 0: that of the rule
  std::int64_t last_at = 0;

  // The next slice. Its views are of pages and of PendingSlices.
  bool waits = false;  // it is in PendingSlices::waiting()
  std::uint32_t slice_number = 0;
  std::uint64_t first_event = 0;
  std::uint64_t begin = 0;
  std::uint32_t first_size = 0;
  std::vector<Bytes> frames{};

  // An event follows those so far.
  void count(const Event& event, std::int64_t at);
  Slice slice() const;
  // The time of the slice: nanoseconds since 1970.
  std::int64_t wall() const;
  bool has_events() const { return next_event != first_event; }
  // Removes all of the slice but `lost` and `closing`: the next one continues after it.
  void begin_next();
  // The slice begins after the records so far. Requires: it has no events.
  void begin_here();
};

// Collects the records of pages in slices, one for each stream. Confined to one thread. Does not
// allocate in steady state.
class PendingSlices {
 public:
  class Sink {
   public:
    virtual ~Sink() = default;
    // The slice is complete, because the records that follow need one of their own. Calls
    // PendingStream::begin_next().
    virtual void add(PendingStream& stream) = 0;
    // The slice is lost, up to the last record. Calls PendingStream::begin_next().
    virtual void drop(PendingStream& stream, DropReason reason) = 0;
    // A slice did not get into the queue.
    virtual void skipped(DropReason reason) = 0;
  };

  // The sink must outlive it.
  explicit PendingSlices(Sink& sink) : sink_(sink) {}

  // Takes the records of a page. Its memory must stay as it is until clear(). Records of unknown
  // streams are ignored. If an allocation fails, the slice of a stream is dropped.
  void take(Page& page);
  // Bytes of frames, texts and answers of the slices.
  std::size_t bytes() const { return bytes_; }
  // The streams with a slice, in the order of their first records.
  const std::vector<PendingStream*>& waiting() const { return waiting_; }
  // The stream has something to write, without a record in a page.
  void wait(PendingStream& stream);
  // The slices were added to the sink: pages are no longer used.
  void clear();

  void remove(std::uint64_t stream) { streams_.erase(stream); }
  std::size_t size() const { return streams_.size(); }

 private:
  void take(const PageRecord& record, Bytes bytes, Page& page);
  void open(const PageRecord& record, Page& page);
  void add(PendingStream& stream, const PageRecord& record, Bytes bytes, std::size_t thread);
  void add_event(PendingStream& stream, const PageRecord& record, Bytes bytes, std::size_t thread);
  void add_answer(PendingStream& stream, const PageRecord& record, Bytes bytes, std::size_t thread);
  std::optional<std::string_view> joined(const PageRecord& record, Bytes bytes, std::size_t thread);
  void add_skip(PendingStream& stream, const Skip& skip);

  Sink& sink_;
  std::unordered_map<std::uint64_t, PendingStream> streams_;
  std::vector<PendingStream*> waiting_;
  // By io thread: the first parts of the answer or text whose last part is still missing. A thread
  // writes all parts one after the other, or drops the rest.
  std::vector<std::string> parts_;
  std::deque<std::string> joined_;  // answers and texts that were in several records
  std::size_t bytes_ = 0;
};

}  // namespace millrace::recording
