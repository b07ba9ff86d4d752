// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "training/contract/catalog.h"
#include "training/contract/plan.h"
#include "training/filling/streams/open_stream.h"
#include "training/filling/streams/stream_function.h"
#include "training/filling/streams/streams_ahead.h"

namespace millrace::training {

// The streams of a plan that one thread keeps open. With slots: one for each slot, until its last
// row. Without slots: all threads together keep at most 256, or 16 each; a thread closes those that
// were unused for longest if all of its streams keep more than 256 MiB of memory.
//
// Streams that planned batches need are opened ahead: all threads together keep at most 256 of
// them, or 16 each, and each thread opens none while those have its share of 256 MiB.
//
// Confined to one thread.
class OpenStreams {
 public:
  // Without slots, and of those that are opened ahead; of all threads, and in bytes.
  static constexpr std::size_t most_streams = 256, most_memory = 256 << 20;

  // `slots`: of the plan; 0: stateless. `threads`: those among which the streams are divided,
  // without slots by their numbers. The catalog and the function must outlive it.
  OpenStreams(const Catalog& catalog, StreamFunction* function, std::uint32_t slots,
              std::size_t threads = 1);

  // The stream of a row. Opens it if it is not open. The stream of the call before stays open if
  // the two are together().
  Result<OpenStream*, ReadError> find(const PlannedRow& row, std::uint64_t epoch);
  bool is_open(const PlannedRow& row, std::uint64_t epoch) const;
  // Whether find() would open the stream of a row of a later batch, as far as that is known now.
  bool opens(const PlannedRow& row, std::uint64_t epoch) const;
  bool has_room() const { return ahead_.has_room(); }
  // Opens this stream, and reads its first row, for find(). Requires: opens(), has_room().
  void open_ahead(const PlannedRow& row, StreamsAhead::Step needed);
  // The batches up to this one are filled.
  void drop_ahead(StreamsAhead::Step step) { ahead_.drop_until(step); }
  // The number of frames before the first bad one, up to the end of the row; 0 if the row's stream
  // is not open.
  std::uint64_t good_frames(const PlannedRow& row, std::uint64_t epoch);
  // True if the streams of two rows are different ones that can be open at the same time.
  bool together(const PlannedRow& one, const PlannedRow& other) const;
  // Closes the stream of a row, if it is open.
  void close(const PlannedRow& row) { close(places_[place_of(row)]); }
  // Closes the stream of a slot after its last row. A row of a plan without slots does not show
  // whether other rows of its stream follow.
  void close_if_ended(const PlannedRow& row);

 private:
  struct Place {
    std::optional<OpenStream> stream;
    std::size_t memory = 0;  // when it was counted last
    std::uint64_t used = 0;  // the call of find()
  };

  StreamCopy copy_of(const PlannedRow& row, std::uint64_t epoch) const;
  StreamCopy key_of(const PlannedRow& row, std::uint64_t epoch) const;
  Result<OpenStream, ReadError> open(const PlannedRow& row, std::uint64_t epoch);
  std::size_t place_of(const PlannedRow& row) const;
  void close(Place& place);
  void count(Place& place);
  // Closes streams for their memory, but not this one, nor that of the call before.
  void close_unused(const Place& wanted);

  const Catalog& catalog_;
  StreamFunction* const function_;
  const std::uint32_t slots_;
  const std::size_t threads_;
  std::unique_ptr<CatalogReader> reader_;  // made by the thread that uses it
  std::vector<Place> places_;              // by slot, or by the stream's number
  StreamsAhead ahead_;
  Place* last_ = nullptr;    // the last call of find() returned it
  Place* before_ = nullptr;  // the call before that
  std::size_t memory_ = 0;   // bytes of all places
  std::uint64_t finds_ = 0;
};

}  // namespace millrace::training
