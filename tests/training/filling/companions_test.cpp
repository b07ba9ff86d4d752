// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <numeric>

#include "tests/training/filling/loading.h"

using namespace millrace;
using namespace millrace::test;
using training::Loader;

namespace {

// One entry per frame, an entry of two values for 3 frames, and 2 entries per frame.
const std::vector<CompanionFormat> formats = {
    {.name = "each", .element = CompanionElement::s64},
    {.name = "third", .element = CompanionElement::s16, .values = 2, .frames_per_entry = 3},
    {.name = "twice", .element = CompanionElement::u8, .entries_per_frame = 2}};

template <class T>
std::vector<std::byte> numbers(std::size_t count, std::uint64_t stream) {
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), static_cast<T>(stream * 10 + 1));
  return bytes_of(values);
}

std::shared_ptr<MemoryCatalog> labelled() {
  const auto catalog = std::make_shared<MemoryCatalog>(FrameType{});
  catalog->set_companions(formats);
  for (std::uint64_t stream = 0; stream < 5; ++stream) {
    const std::uint64_t frames = 5 + 4 * stream;
    catalog->add({.frames = numbers<std::int16_t>(frames, stream),
                  .companions = {numbers<std::int64_t>(frames, stream),
                                 numbers<std::int16_t>((frames + 2) / 3 * 2, stream),
                                 numbers<std::uint8_t>(2 * frames, stream)}});
  }
  return catalog;
}

// A companion of a batch by the plan and the catalog.
std::vector<std::byte> expected(const MemoryCatalog& catalog, const training::PlannedBatch& batch,
                                std::size_t companion) {
  const CompanionFormat& format = formats[companion];
  const std::size_t row_bytes = format.most_entries(batch.body) * format.entry_bytes();
  std::vector<std::byte> bytes(batch.rows * row_bytes);
  for (std::size_t row = 0; row < batch.framed.size(); ++row) {
    const auto& planned = batch.framed[row];
    const EntryRange range = format.entries_in(planned.frame, planned.row.size);
    const auto from =
        Bytes(catalog.streams()[planned.stream].companions[companion])
            .subspan(range.begin * format.entry_bytes(), range.count * format.entry_bytes());
    std::ranges::copy(from, bytes.begin() + static_cast<std::ptrdiff_t>(row * row_bytes));
  }
  return bytes;
}

}  // namespace

TEST_CASE("companions are cut at the borders of bodies, and unused entries are 0") {
  const auto catalog = labelled();
  const auto plan = std::make_shared<ListedPlan>(*catalog, 2, Spec{.size = 4, .left = 2});
  for (const std::uint32_t threads : {0, 1, 3}) {
    Loader loader(catalog, plan, {.threads = threads});
    // Twice, so that buffers have the remains of other batches.
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (const auto& planned : plan->batches()) {
        const auto batch = next_copy(loader);
        REQUIRE(batch.has_value());
        REQUIRE(batch->companions.size() == 3);
        for (std::size_t i = 0; i < 3; ++i)
          CHECK(batch->companions[i] == expected(*catalog, planned, i));
      }
      CHECK_FALSE(next_copy(loader).has_value());
    }
  }
}

TEST_CASE("each entry of a companion is in one body") {
  const auto catalog = labelled();
  const ListedPlan plan(*catalog, 2, Spec{.size = 4});
  for (const CompanionFormat& format : formats) {
    std::vector<std::uint64_t> next(catalog->size());
    for (const auto& batch : plan.batches())
      for (const auto& row : batch.framed) {
        const EntryRange range = format.entries_in(row.frame, row.row.size);
        CHECK(range.count <= format.most_entries(batch.body));
        CHECK(range.begin == next[row.stream]);
        next[row.stream] += range.count;
      }
    for (std::uint64_t stream = 0; stream < catalog->size(); ++stream)
      CHECK(next[stream] == format.entries_of(catalog->frames(stream)));
  }
}

TEST_CASE("each companion is aligned to 256 bytes") {
  const auto catalog = labelled();
  Loader loader(catalog, std::make_shared<ListedPlan>(*catalog, 2, Spec{.size = 4}), {});
  const auto batch = take(loader);
  REQUIRE(batch.has_value());
  for (const MutableBytes companion : batch->companions())
    CHECK(reinterpret_cast<std::uintptr_t>(companion.data()) % 256 == 0);
}
