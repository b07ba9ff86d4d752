// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/answer.h"
#include "base/ids.h"
#include "base/row_columns.h"
#include "workers/library/worker_batch.h"

namespace millrace {

// Writes each row of a worker's batches as one JSON object, which is also the answer to the row:
//
//   {"stream":"mic-7","seq":0,"begin":0,"left":0,"size":1600,"right":0,"flags":["START","RESET"],
//    "reason":"start","gap":0,"mark":null,"slot":5,"batch":1}
//
// A row that carries messages of the client to the worker has the member "messages" too:
// [{"position":0,"data":…},…], with "set":true if the message changes options.
//
// Confined to one thread. Reuses its memory from batch to batch.
class TapLines {
 public:
  // With `checksums`, adds the member "crc32c": the checksum of the row's bytes in the narrowest
  // tensor that holds the row, so the batch's other rows do not matter; null for a marker row.
  explicit TapLines(bool checksums) : checksums_(checksums) {}

  // Writes the lines of a batch. The other arguments are columns() and width_buckets() of its
  // worker.
  void format(const WorkerBatch& batch, RowColumns columns,
              std::span<const std::uint32_t> width_buckets);

  // The lines of the last batch, as answers to its rows with frames and to its marker rows.
  std::span<const Answer> framed() const { return framed_; }
  std::span<const Answer> marks() const { return marks_; }

 private:
  void write(const worker_protocol::RowEntry& row, const WorkerBatch& batch, std::string& line);

  const bool checksums_;
  std::map<StreamId, std::string> names_;
  std::vector<Answer> framed_, marks_;
};

}  // namespace millrace
