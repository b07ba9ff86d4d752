// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tests/support/bytes.h"
#include "tests/support/listed_plan.h"
#include "tests/support/memory_catalog.h"
#include "tests/support/patience.h"
#include "training/filling/loader.h"

namespace millrace::test {

// A copy of a batch.
struct LoadedBatch {
  std::uint64_t epoch = 0, step = 0;
  std::uint32_t rows = 0, width = 0;
  std::vector<std::byte> tensor;
  std::vector<std::int32_t> slot, left, size, right;
  std::vector<std::uint8_t> flags, reset;
  std::vector<std::vector<std::byte>> companions;
  std::vector<worker_protocol::RowEntry> framed, marks;
  bool operator==(const LoadedBatch&) const = default;
};

inline LoadedBatch copy_of(const WorkerBatch& batch) {
  const auto copy = [](auto span) {
    return std::vector<std::remove_const_t<typename decltype(span)::element_type>>(span.begin(),
                                                                                   span.end());
  };
  LoadedBatch result{.epoch = batch.epoch(),
                     .step = batch.step(),
                     .rows = batch.rows(),
                     .width = batch.width(),
                     .tensor = copy(batch.data()),
                     .slot = copy(batch.slot()),
                     .left = copy(batch.left()),
                     .size = copy(batch.size()),
                     .right = copy(batch.right()),
                     .flags = copy(batch.flags()),
                     .reset = copy(batch.reset()),
                     .companions = {},
                     .framed = batch.framed(),
                     .marks = batch.marks()};
  for (const MutableBytes companion : batch.companions())
    result.companions.push_back(copy(companion));
  return result;
}

inline std::vector<std::byte> row_of(const LoadedBatch& batch, std::size_t row) {
  const std::size_t bytes = batch.tensor.size() / batch.rows;
  const auto begin = batch.tensor.begin() + static_cast<std::ptrdiff_t>(row * bytes);
  return {begin, begin + static_cast<std::ptrdiff_t>(bytes)};
}

inline Time soon() { return Clock::now() + patience; }

// The next batch; nullopt at the end of the epoch.
inline std::optional<WorkerBatch> take(training::Loader& loader) {
  auto batch = loader.next_until(soon());
  REQUIRE(batch.has_value());
  if (!batch->has_value()) REQUIRE(loader.at_end());
  return std::move(*batch);
}

// The error of the next batch.
inline training::DataError error_of(training::Loader& loader) {
  const auto batch = loader.next_until(soon());
  REQUIRE(batch.has_error());
  return batch.error();
}

// The next batch, copied and given back.
inline std::optional<LoadedBatch> next_copy(training::Loader& loader) {
  auto batch = take(loader);
  if (!batch) return std::nullopt;
  LoadedBatch copy = copy_of(*batch);
  loader.give_back(*batch);
  return copy;
}

// The rest of the epoch.
inline std::vector<LoadedBatch> read_epoch(training::Loader& loader) {
  std::vector<LoadedBatch> batches;
  while (auto batch = next_copy(loader)) batches.push_back(std::move(*batch));
  return batches;
}

using Read = Result<void, training::ReadError>;

// For MemoryCatalog::on_open: a stream cannot be opened.
inline auto cannot_open(std::uint64_t stream, std::string why) {
  return [stream, why = std::move(why)](std::uint64_t opened) -> Read {
    if (opened == stream) return training::ReadError{training::DataFault::read, why};
    return {};
  };
}

// For MemoryCatalog::on_read: stream 4 fails from its frame 8 on.
inline Read four_is_damaged(std::uint64_t stream, std::uint64_t begin) {
  if (stream == 4 && begin >= 8)
    return training::ReadError{training::DataFault::read, "four.wav: damaged"};
  return {};
}

// Eight streams of 7 to 28 frames s16, on three slots, in chunks of four frames.
struct Eight {
  explicit Eight(std::uint64_t first_frames = 7) {
    for (std::uint64_t i = 0; i < 8; ++i) catalog->add_numbered(first_frames + 3 * i);
  }

  std::shared_ptr<const training::Plan> plan(std::uint32_t slots = 3) const {
    return std::make_shared<ListedPlan>(*catalog, slots, spec);
  }
  training::Loader loader(training::LoaderSettings settings = {},
                          std::shared_ptr<training::StreamFunction> function = nullptr) const {
    settings.context = spec.left;
    return {catalog, plan(), settings, std::move(function)};
  }

  std::shared_ptr<MemoryCatalog> catalog = std::make_shared<MemoryCatalog>(FrameType{});
  Spec spec{.size = 4};
};

}  // namespace millrace::test
