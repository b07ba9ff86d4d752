// SPDX-License-Identifier: Apache-2.0
#include "examples/pocketsphinx/batch_decoder.h"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <utility>

#include "chunker/row.h"

namespace millrace::pocketsphinx {

BatchDecoder::BatchDecoder(std::filesystem::path model, Crew& crew)
    : model_(std::move(model)), crew_(crew) {}

void BatchDecoder::warm(std::size_t decoders) {
  std::vector<std::unique_ptr<Decoder>> loaded(decoders);
  std::vector<std::exception_ptr> failures(decoders);
  crew_.run(decoders, [&](std::size_t i) {
    try {
      loaded[i] = std::make_unique<Decoder>(model_);
    } catch (...) {
      failures[i] = std::current_exception();
    }
  });
  for (const auto& failure : failures)
    if (failure) std::rethrow_exception(failure);
  std::ranges::move(loaded, std::back_inserter(idle_));
}

std::size_t BatchDecoder::decoders() const {
  return idle_.size() + static_cast<std::size_t>(std::ranges::count_if(
                            seats_, [](const Seat& seat) { return seat.utterances.has_value(); }));
}

const BatchDecoder::Answers& BatchDecoder::decode(const WorkerBatch& batch,
                                                  const RowColumns& columns) {
  deal(batch, columns);
  // The end of an utterance costs as much as ten rows: begun last, the others would wait for it.
  std::ranges::stable_partition(called_, [&](std::uint32_t slot) {
    return std::ranges::any_of(seats_[slot].turns,
                               [](const Turn& turn) { return (turn.row.flags & flag::last) != 0; });
  });
  seat_idle_decoders();
  crew_.run(called_.size(), [&](std::size_t i) { take_turns(seats_[called_[i]]); });
  for (std::uint32_t slot : called_) release(seats_[slot]);
  return answers_;
}

BatchDecoder::Seat& BatchDecoder::seat(std::uint32_t slot) {
  if (slot >= seats_.size()) seats_.resize(slot + 1);
  return seats_[slot];
}

void BatchDecoder::deal(const WorkerBatch& batch, const RowColumns& columns) {
  called_.clear();
  answers_.framed.assign(batch.framed().size(), {});
  answers_.marks.assign(batch.marks().size(), {});
  const auto call = [&](const worker_protocol::RowEntry& row, Samples body, Answer& answer) {
    auto& turns = seat(row.slot).turns;
    if (turns.empty()) called_.push_back(row.slot);
    turns.push_back({{row.flags, body}, &answer});
  };
  for (std::size_t i = 0; i < batch.framed().size(); ++i) {
    const auto& row = batch.framed()[i];
    const Samples columns_of_row = batch.row_as<std::int16_t>(static_cast<std::uint32_t>(i));
    call(row, columns_of_row.subspan(columns.body(row.left), row.size), answers_.framed[i]);
  }
  for (std::size_t i = 0; i < batch.marks().size(); ++i)
    call(batch.marks()[i], {}, answers_.marks[i]);
}

void BatchDecoder::seat_idle_decoders() {
  for (std::uint32_t slot : called_) {
    if (seats_[slot].utterances || idle_.empty()) continue;
    seats_[slot].utterances.emplace(std::move(idle_.back()));
    idle_.pop_back();
  }
}

void BatchDecoder::take_turns(Seat& seat) const try {
  if (!seat.utterances) seat.utterances.emplace(std::make_unique<Decoder>(model_));
  for (const Turn& turn : seat.turns) *turn.answer = seat.utterances->take(turn.row);
} catch (const std::exception& error) {
  for (const Turn& turn : seat.turns) *turn.answer = {Answer::Kind::error, error.what()};
}

void BatchDecoder::release(Seat& seat) {
  const bool over = (seat.turns.back().row.flags & (flag::end | flag::abort)) != 0;
  if (over && seat.utterances) {
    idle_.push_back(std::move(*seat.utterances).release());
    seat.utterances.reset();
  }
  seat.turns.clear();
}

}  // namespace millrace::pocketsphinx
