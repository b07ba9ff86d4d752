// SPDX-License-Identifier: Apache-2.0
#include "examples/pocketsphinx/batch_decoder.h"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <utility>

#include "chunker/row.h"

namespace millrace::pocketsphinx {

BatchDecoder::BatchDecoder(std::filesystem::path model, ThreadTeam& threads)
    : model_(std::move(model)), threads_(threads) {}

void BatchDecoder::warm(std::size_t decoders) {
  std::vector<std::unique_ptr<Decoder>> loaded(decoders);
  std::vector<std::exception_ptr> failures(decoders);
  threads_.run(decoders, [&](std::size_t i) {
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
  return idle_.size() +
         static_cast<std::size_t>(std::ranges::count_if(
             slots_, [](const SlotDecoder& decoder) { return decoder.utterances.has_value(); }));
}

const BatchDecoder::Answers& BatchDecoder::decode(const WorkerBatch& batch,
                                                  const RowColumns& columns) {
  collect_rows(batch, columns);
  // Slots whose utterance ends come first: they take as long as ten rows, and would delay the batch
  // if begun last.
  std::ranges::stable_partition(active_slots_, [&](std::uint32_t slot) {
    return std::ranges::any_of(
        slots_[slot].rows, [](const PendingRow& row) { return (row.row.flags & flag::last) != 0; });
  });
  assign_idle_decoders();
  threads_.run(active_slots_.size(), [&](std::size_t i) { decode_rows(slots_[active_slots_[i]]); });
  for (std::uint32_t slot : active_slots_) release(slots_[slot]);
  return answers_;
}

BatchDecoder::SlotDecoder& BatchDecoder::decoder(std::uint32_t slot) {
  if (slot >= slots_.size()) slots_.resize(slot + 1);
  return slots_[slot];
}

void BatchDecoder::collect_rows(const WorkerBatch& batch, const RowColumns& columns) {
  active_slots_.clear();
  answers_.framed.assign(batch.framed().size(), {});
  answers_.marks.assign(batch.marks().size(), {});
  const auto add = [&](const worker_protocol::RowEntry& row, Samples body, Answer& answer) {
    auto& rows = decoder(row.slot).rows;
    if (rows.empty()) active_slots_.push_back(row.slot);
    rows.push_back({{row.flags, body, row.begin}, &answer});
  };
  for (std::size_t i = 0; i < batch.framed().size(); ++i) {
    const auto& row = batch.framed()[i];
    const Samples columns_of_row = batch.row_as<std::int16_t>(static_cast<std::uint32_t>(i));
    add(row, columns_of_row.subspan(columns.body(row.left), row.size), answers_.framed[i]);
  }
  for (std::size_t i = 0; i < batch.marks().size(); ++i)
    add(batch.marks()[i], {}, answers_.marks[i]);
}

void BatchDecoder::assign_idle_decoders() {
  for (std::uint32_t slot : active_slots_) {
    if (slots_[slot].utterances || idle_.empty()) continue;
    slots_[slot].utterances.emplace(std::move(idle_.back()));
    idle_.pop_back();
  }
}

void BatchDecoder::decode_rows(SlotDecoder& decoder) const try {
  if (!decoder.utterances) decoder.utterances.emplace(std::make_unique<Decoder>(model_));
  for (const PendingRow& row : decoder.rows) *row.answer = decoder.utterances->take(row.row);
} catch (const std::exception& error) {
  for (const PendingRow& row : decoder.rows) *row.answer = {Answer::Kind::error, error.what()};
}

void BatchDecoder::release(SlotDecoder& decoder) {
  const bool over = (decoder.rows.back().row.flags & (flag::end | flag::abort)) != 0;
  if (over && decoder.utterances) {
    idle_.push_back(std::move(*decoder.utterances).release());
    decoder.utterances.reset();
  }
  decoder.rows.clear();
}

}  // namespace millrace::pocketsphinx
