// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/stats.h"
#include "batcher/batch.h"

namespace millrace {

// The contents of a pipeline's batches. Written by its home thread, read by the exporter.
struct BatchStats {
  Labelled<Counter, Trigger> batches;
  Histogram rows_per_batch{buckets::batch};  // rows with frames, of batches with such rows
  Counter offered;                           // rows that these batches could have held
  Counter rows;                              // rows with frames
  Counter marks;                             // marker rows
  Counter frames;                            // frames in tensors, padding included
  Counter frames_padded;                     // padding among `frames`
  Counter rows_frames_padded;                // padding in rows that are narrower than the tensor

  // Counts a closed batch that could have held `most` rows.
  void count(const Batch& batch, std::uint32_t most) {
    batches[batch.trigger].add();
    marks.add(batch.marks.size());
    if (batch.framed.empty()) return;
    std::uint64_t real = 0;
    for (const BatchRow& row : batch.framed) real += row.ready.row.window();
    const std::uint64_t all = std::uint64_t{batch.rows} * batch.width;
    rows_per_batch.observe(static_cast<std::int64_t>(batch.framed.size()));
    offered.add(most);
    rows.add(batch.framed.size());
    frames.add(all);
    frames_padded.add(all - real);
    rows_frames_padded.add(batch.framed.size() * std::uint64_t{batch.width} - real);
  }
};

}  // namespace millrace
