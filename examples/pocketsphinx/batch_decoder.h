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
#include "examples/pocketsphinx/crew.h"
#include "examples/pocketsphinx/decoder.h"
#include "examples/pocketsphinx/utterances.h"
#include "workers/library/worker_batch.h"

namespace millrace::pocketsphinx {

// Decodes batches: one decoder per slot that a stream has, the slots of a batch on all threads of
// a crew, the rows of a slot in order. A decoder is loaded when a slot has its first row, and
// serves another stream when that slot's stream has ended; so there are as many as there ever were
// streams at a time.
// Confined to one thread.
class BatchDecoder {
 public:
  // The crew has to outlive it.
  BatchDecoder(std::filesystem::path model, Crew& crew);

  // Loads decoders ahead, all threads at once. Throws std::runtime_error without a model.
  void warm(std::size_t decoders);

  struct Answers {
    std::vector<Answer> framed, marks;  // for each row of the batch
  };
  // Valid until the next call.
  const Answers& decode(const WorkerBatch& batch, const RowColumns& columns);

  // Decoders loaded so far.
  std::size_t decoders() const;

 private:
  struct Turn {
    SpokenRow row;
    Answer* answer;
  };
  struct Seat {  // of a slot
    std::optional<Utterances> utterances;
    std::vector<Turn> turns;  // its rows of the batch
  };

  Seat& seat(std::uint32_t slot);
  void deal(const WorkerBatch& batch, const RowColumns& columns);
  void seat_idle_decoders();
  void take_turns(Seat& seat) const;
  void release(Seat& seat);

  const std::filesystem::path model_;
  Crew& crew_;
  std::vector<std::unique_ptr<Decoder>> idle_;
  std::vector<Seat> seats_;            // by slot
  std::vector<std::uint32_t> called_;  // slots that the batch has rows of
  Answers answers_;
};

}  // namespace millrace::pocketsphinx
