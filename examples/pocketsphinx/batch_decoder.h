// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "base/answer.h"
#include "base/row_columns.h"
#include "examples/pocketsphinx/decoder.h"
#include "examples/pocketsphinx/thread_team.h"
#include "examples/pocketsphinx/utterances.h"
#include "workers/library/worker_batch.h"

namespace millrace::pocketsphinx {

// Decodes batches: one decoder per slot with a stream. The slots of a batch are decoded on all
// threads of a team, the rows of a slot in order. A decoder is loaded for the first row of a slot,
// and serves another stream after the slot's stream has ended. So there are as many decoders as
// the largest number of streams at the same time so far.
//
// Confined to one thread.
class BatchDecoder {
 public:
  // `threads` outlives it. `model` is the folder of the model.
  BatchDecoder(std::filesystem::path model, ThreadTeam& threads);

  // Loads decoders in advance, on all threads. Throws std::runtime_error if there is no model.
  void warm(std::size_t decoders);

  struct Answers {
    std::vector<Answer> framed, marks;  // one for each row of the batch
  };
  // Returns the answers, valid until the next call. A row whose decoder fails gets an error.
  const Answers& decode(const WorkerBatch& batch, const RowColumns& columns);

  // Number of decoders that are loaded.
  std::size_t decoders() const;

 private:
  struct PendingRow {
    SpokenRow row;
    Answer* answer;
  };
  struct SlotDecoder {  // the decoder of a slot
    std::optional<Utterances> utterances;
    std::vector<PendingRow> rows;  // its rows of the batch
  };

  SlotDecoder& decoder(std::uint32_t slot);
  void collect_rows(const WorkerBatch& batch, const RowColumns& columns);
  void assign_idle_decoders();
  void decode_rows(SlotDecoder& decoder) const;
  void release(SlotDecoder& decoder);

  const std::filesystem::path model_;
  ThreadTeam& threads_;
  std::vector<std::unique_ptr<Decoder>> idle_;
  std::vector<SlotDecoder> slots_;           // by slot
  std::vector<std::uint32_t> active_slots_;  // slots with rows in the batch
  Answers answers_;
};

}  // namespace millrace::pocketsphinx
