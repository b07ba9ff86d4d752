// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "gpu/host/batch_writer.h"
#include "gpu/host/companion_layout.h"
#include "gpu/host/slab_layout.h"
#include "schemas/worker_messages.h"
#include "training/contract/catalog.h"
#include "training/contract/plan.h"
#include "training/filling/stream_error.h"

namespace millrace::training {

// A batch on its way through the threads of a BatchFiller, or another result in the order of the
// batches. The thread that plans makes it. While `remaining` threads fill it, each of them writes
// its own rows. The last of them passes it to the consumer.
struct FillingJob {
  enum class Kind : std::uint8_t { batch, epoch_end, no_buffer, failed };
  // A row that could not be written.
  struct Failure {
    std::size_t row = 0;
    ReadError error;
    std::exception_ptr thrown{};  // then there is no `error`
    std::uint64_t good = 0;       // as FailedStream::good
  };

  FillingJob(const RowFormat& format, std::uint32_t slots, std::size_t parts)
      : writer(format, slots), failures(parts), left_out(parts), slots_(slots) {}

  // Writes message.opened.
  void list_opened();
  // The failure at the first row that could not be written, of all parts.
  const Failure* first_failure() const;
  // The error of a job that failed. Throws the exception if that is why.
  DataError error(const Catalog& catalog) const;
  // All rows with frames are written, or left out: writes the padding rows and the end of the
  // message. The streams that failed in this batch are in `failed` then.
  void end_rows(const Catalog& catalog);

  std::uint64_t number = 0;  // jobs before it since the start
  Kind kind = Kind::batch;
  PlannedBatch planned;
  std::shared_ptr<const EpochPlan> of_epoch{};  // that `planned` belongs to
  std::size_t openings = 0;                     // rows of `planned` that open streams
  std::uint64_t epoch = 0;                      // that has ended

  std::optional<std::uint32_t> buffer{};
  bool written = false;  // BatchBuffers knows that
  BatchWriter writer;
  CompanionLayout companions{};  // for planned.rows and planned.body
  SlabShape shape{};
  worker_protocol::HandedBatch message{};
  std::atomic<std::uint32_t> remaining{0};

  std::vector<std::optional<Failure>> failures;  // the first of each part

  // Rows of streams that have failed, where these are skipped, by part: the numbers of rows in
  // `planned`, and the failures of streams that have failed here.
  struct LeftOut {
    std::vector<std::size_t> framed, marks;
    std::vector<Failure> failures;
  };
  std::vector<LeftOut> left_out;
  // Failures that were found before rows are filled.
  std::vector<Failure> refused{};
  std::vector<DataError> failed{};
  std::exception_ptr thrown{};  // kind `failed`, if it is not the failure of a row

 private:
  DataError error_of(const Failure& failure, const Catalog& catalog) const;
  void compact();

  std::uint32_t slots_;  // 0: the slot of a row is its number
};

}  // namespace millrace::training
