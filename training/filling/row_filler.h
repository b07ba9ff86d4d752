// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "base/bytes.h"
#include "base/result.h"
#include "training/contract/catalog.h"
#include "training/filling/filling_job.h"
#include "training/filling/stream_error.h"
#include "training/filling/streams/open_streams.h"
#include "training/filling/streams/stream_function.h"

namespace millrace::training {

// Writes its part of the rows of each batch, and keeps the streams of these rows open.
//
// Confined to one thread.
class RowFiller {
 public:
  // The share of the rows: part `part` of `parts`.
  struct Part {
    std::size_t part = 0;
    std::size_t parts = 1;
    FailedStreams* failed = nullptr;  // null: streams are not skipped; must outlive the filler
  };

  // `slots`: of the plan; 0: stateless. The catalog and the function must outlive it.
  RowFiller(const Catalog& catalog, StreamFunction* function, std::uint32_t slots, Part part);

  // Writes the rows, and their entries in the message and in the companions. At the first row that
  // cannot be written it sets job.failures of its part and returns. If failed streams are skipped,
  // it lists the row in job.left_out instead, and each later row of this stream. A stream that has
  // failed before fails at the same row again. Returns early if `stop` is set.
  void fill(FillingJob& job, const std::atomic<bool>& stop);

  // Whether it would open the stream of this row, as far as that is known now.
  bool opens(const PlannedBatch& batch, std::size_t row) const;
  // Whether another stream may be opened ahead.
  bool has_room() const { return streams_.has_room(); }
  // Opens this stream before the batch is filled. Requires: opens(), has_room().
  void open_ahead(const PlannedBatch& batch, std::size_t row);

 private:
  // A row whose frames are known and not yet written.
  struct Found {
    std::uint32_t at = 0;
    OpenStream* stream = nullptr;
    Bytes window;
  };

  bool is_mine(const PlannedRow& row) const;
  void fill_rows(FillingJob& job, const std::atomic<bool>& stop);
  std::optional<Found> find(FillingJob& job, std::uint32_t at);
  void write(FillingJob& job, const Found& row, Bytes next);
  bool has_failed(const PlannedRow& row, std::uint64_t epoch) const;
  void leave_out(FillingJob& job, std::size_t at);
  void set_failed(FillingJob& job, std::size_t at, ReadError error);
  template <class Step>
  bool attempt(FillingJob& job, std::uint32_t at, const Step& step);
  Result<void, ReadError> check_before(OpenStream& stream, const PlannedRow& row);
  Result<void, ReadError> read(FillingJob& job, Found& row);
  Result<void, ReadError> put(FillingJob& job, const Found& row, Bytes next);
  Result<void, ReadError> put_companions(FillingJob& job, const Found& row);

  const Catalog& catalog_;
  const std::uint32_t slots_;
  const Part part_;
  OpenStreams streams_;
  const bool changes_;  // a function changes the streams
  // Without slots and a function: the good frames of a stream when it was open last.
  std::unordered_map<std::uint64_t, std::uint64_t> good_{};
};

}  // namespace millrace::training
