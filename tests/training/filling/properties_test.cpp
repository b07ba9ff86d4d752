// SPDX-License-Identifier: Apache-2.0
// Over random catalogs, rules, slots, worlds, strides and resumes.
#include <catch2/catch.hpp>
#include <map>

#include "gpu/host/host_device.h"
#include "gpu/host/row_writer.h"
#include "tests/training/filling/random_loading.h"
#include "training/plans/make_plan.h"
#include "workers/feed/row_entry.h"
#include "workers/feed/worker_slabs.h"

using namespace millrace;
using namespace millrace::test;
using training::CutRow;
using training::PlanPosition;
using worker_protocol::RowEntry;

namespace {

// A row of a batch, by its stream and number. Its slot is not that of the service.
struct RowBytes {
  RowEntry entry;
  std::uint32_t width = 0;
  std::vector<std::byte> tensor;
  bool operator==(const RowBytes&) const = default;
};
using Rows = std::map<std::pair<std::uint64_t, std::uint64_t>, RowBytes>;

void add(Rows& rows, RowEntry entry, std::uint32_t width, std::vector<std::byte> tensor) {
  entry.slot = 0;
  const auto key = std::pair(number(entry.stream), entry.seq);
  const bool added = rows.emplace(key, RowBytes{entry, width, std::move(tensor)}).second;
  REQUIRE(added);
}

Rows rows_of(const std::vector<LoadedBatch>& batches) {
  Rows rows;
  for (const LoadedBatch& batch : batches) {
    for (std::size_t i = 0; i < batch.framed.size(); ++i)
      add(rows, batch.framed[i], batch.width, row_of(batch, i));
    for (const RowEntry& mark : batch.marks) add(rows, mark, 0, {});
  }
  return rows;
}

// Writes rows as the lanes of the service do. Windows are in one piece or two, as in the ring of a
// live stream.
class ServicePath {
 public:
  explicit ServicePath(const RandomLoading& loading)
      : loading_(loading),
        slabs_({.format = loading.format(),
                .slots = 1,
                .rows = 1,
                .width = loading.options.chunk->width()},
               open_host_device(), 1, nullptr) {}

  // The row in a tensor of `width` columns.
  std::vector<std::byte> write(std::uint64_t stream, const CutRow& cut, std::uint32_t width,
                               std::mt19937_64& random, RowEntry& entry) {
    const std::size_t frame = loading_.catalog->frame_type().bytes();
    const Bytes window = Bytes(loading_.catalog->streams()[stream].frames)
                             .subspan((cut.frame - cut.row.left) * frame, cut.row.window() * frame);
    const std::size_t first = 1 + random() % cut.row.window();
    Batch batch;
    BatchRow row{.stream = StreamId(stream), .slot = Slot{0}, .ready = {}};
    row.ready.row = cut.row;
    row.ready.window = {window.first(first * frame), window.subspan(first * frame)};
    (cut.row.has_frames() ? batch.framed : batch.marks).push_back(std::move(row));
    batch.rows = 1;
    batch.width = width;
    const auto* message = slabs_.write(batch, {});
    entry = message->framed.front();
    const Bytes tensor = slabs_.ring().slab(message->slab);
    const std::size_t bytes =
        width * loading_.catalog->frame_type().values * size_of(loading_.dtype);
    std::vector<std::byte> copy(tensor.begin(),
                                tensor.begin() + static_cast<std::ptrdiff_t>(bytes));
    slabs_.finish();
    return copy;
  }

 private:
  const RandomLoading& loading_;
  WorkerSlabs slabs_;
};

}  // namespace

TEST_CASE("rows and tensor bytes of a plan are those of the service") {
  std::size_t compared = 0;
  with_loadings(30, 1, [&](const RandomLoading& loading, std::mt19937_64& random) {
    auto loader = loading.loader(random);
    const std::uint64_t epoch = random() % 2;
    loader.seek({epoch, 0});
    Rows rows = rows_of(read_epoch(loader));
    ChunkRule rule = *loading.options.chunk;
    if (rule.sizes.by == SizeRule::By::adaptive) rule.sizes.by = SizeRule::By::fixed;
    rule.sizes.seed += epoch;
    ServicePath service(loading);
    for (std::uint64_t stream = 0; stream < loading.catalog->size(); ++stream)
      for (const CutRow& live : training::planned(training::service_rows(
               rule, loading.catalog->name(stream), loading.catalog->events(stream),
               loading.catalog->frames(stream), random))) {
        auto row = rows.extract({stream, live.row.seq});
        REQUIRE_FALSE(row.empty());
        ++compared;
        if (!live.row.has_frames()) {
          CHECK(row.mapped().entry == entry_of(StreamId(stream), 0, live.row));
          continue;
        }
        RowEntry entry;
        const auto tensor = service.write(stream, live, row.mapped().width, random, entry);
        CHECK(row.mapped().entry == entry);
        CHECK((row.mapped().tensor == tensor));
      }
    CHECK(rows.empty());
  });
  CHECK(compared > 500);
}

TEST_CASE("a resumed run equals an uninterrupted run, with any threads and stride") {
  with_loadings(15, 3, [](const RandomLoading& loading, std::mt19937_64& random) {
    const training::Rank rank{static_cast<std::uint32_t>(random() % loading.world), loading.world};
    auto whole = loading.loader(random, rank);
    std::vector<std::vector<LoadedBatch>> epochs;
    for (int epoch = 0; epoch < 2; ++epoch) epochs.push_back(read_epoch(whole));

    auto resumed = loading.loader(random, rank);
    std::uint64_t from = random() % (epochs[0].size() + 1);
    resumed.seek({0, from});
    for (const auto& epoch : epochs) {
      for (; from < epoch.size(); ++from) CHECK((next_copy(resumed) == epoch[from]));
      CHECK_FALSE(next_copy(resumed).has_value());
      from = 0;
    }

    const std::uint64_t stride = 1 + random() % 3, first = random() % stride;
    auto strided = loading.loader({.rank = rank, .stride = stride, .first_step = first});
    strided.seek({0, first});
    for (const auto& epoch : epochs) {
      for (std::size_t step = first; step < epoch.size(); step += stride)
        CHECK((next_copy(strided) == epoch[step]));
      CHECK_FALSE(next_copy(strided).has_value());
    }
  });
}

TEST_CASE("rows and whole streams of a stateless plan are those of the catalog") {
  with_loadings(12, 4, [](const RandomLoading& loading, std::mt19937_64& random) {
    RandomLoading stateless = loading;
    stateless.options.mode = training::PlanMode::stateless;
    stateless.options.slots = 0;
    stateless.options.rows = 3;
    if (random() % 2 == 0) {
      stateless.options.chunk.reset();
      stateless.options.width_buckets.clear();
    }
    stateless.options.drop_last = false;
    const auto plan = training::make_plan(*loading.catalog, stateless.options, {});
    if (!plan) return;
    RowFormat format = loading.format();
    if (!stateless.options.chunk) format.context = 0;
    std::vector<LoadedBatch> first;
    for (const std::uint32_t threads : {0, 1, 3}) {
      training::Loader loader(loading.catalog,
                              training::plan_of(*loading.catalog, stateless.options),
                              {.threads = threads,
                               .dtype = loading.dtype,
                               .context = format.context,
                               .repeat = format.repeat});
      auto batches = read_epoch(loader);
      if (threads == 0)
        first = std::move(batches);
      else
        CHECK((batches == first));
    }
    const RowWriter writer(format);
    const auto planned = training::batches_of(*(*plan)->epoch(0));
    REQUIRE(planned.size() == first.size());
    for (std::size_t i = 0; i < planned.size(); ++i)
      for (std::size_t at = 0; at < planned[i].framed.size(); ++at) {
        const auto& row = planned[i].framed[at];
        const std::size_t frame = loading.catalog->frame_type().bytes();
        const Bytes window =
            Bytes(loading.catalog->streams()[row.stream].frames)
                .subspan((row.frame - row.row.left) * frame, row.row.window() * frame);
        std::vector<std::byte> tensor(planned[i].width * writer.column_bytes());
        writer.write(tensor, {window, Bytes()}, row.row.left);
        CHECK((row_of(first[i], at) == tensor));
      }
  });
}
