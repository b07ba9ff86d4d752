// SPDX-License-Identifier: Apache-2.0
// Streams that are opened before the batch that needs them.
#include <semaphore>

#include "tests/training/filling/loading.h"
#include "training/filling/streams/open_streams.h"

using namespace millrace;
using namespace millrace::test;
using training::OpenStreams;
using training::PlannedRow;
using training::ReadError;
using training::StreamCopy;
using training::StreamFunction;

namespace {

// Counts its calls. The stream of a call with this number fails.
class Counting final : public StreamFunction {
 public:
  int fails_at = 0;
  std::counting_semaphore<> called{0};
  std::atomic<int> calls{0};
  std::array<std::array<std::atomic<int>, 8>, 64> by_stream{};  // calls by epoch and stream

  Result<void, ReadError> change(const StreamCopy& of, Content&) override {
    const bool fails = ++calls == fails_at;
    ++by_stream.at(of.epoch).at(of.stream);
    called.release();
    if (fails) return ReadError{training::DataFault::function, "it failed"};
    return {};
  }
  bool was_called(int times) {
    for (int i = 0; i < times; ++i)
      if (!called.try_acquire_for(patience)) return false;
    return true;
  }
};

PlannedRow opening_row(std::uint64_t stream, std::uint32_t slot = 0) {
  PlannedRow row{.stream = stream, .slot = slot, .opens = true, .row = {}};
  row.row.size = 4;
  return row;
}

}  // namespace

TEST_CASE("the streams of later batches are opened while the consumer holds a batch") {
  Eight eight;
  const auto function = std::make_shared<Counting>();
  for (const std::uint32_t threads : {1, 3}) {
    auto loader =
        eight.loader({.threads = threads, .prefetch = 1, .dtype = Element::s16}, function);
    auto batch = take(loader);
    CHECK(function->was_called(16));  // the epoch has 8 streams, and so has the next one
    loader.give_back(*batch);
    loader.stop();
    while (function->called.try_acquire()) {
    }
  }
}

TEST_CASE("a stream that is opened ahead is opened once") {
  Eight eight;
  const auto function = std::make_shared<Counting>();
  auto loader = eight.loader({.threads = 2, .prefetch = 1, .dtype = Element::s16}, function);
  std::vector<LoadedBatch> batches = read_epoch(loader);
  CHECK(function->was_called(16));
  for (const auto& epoch : function->by_stream)
    for (const auto& stream_calls : epoch) CHECK(stream_calls <= 1);
  auto plain = eight.loader({.threads = 0, .dtype = Element::s16}, function);
  CHECK(read_epoch(plain) == batches);
}

TEST_CASE("the error of a stream that is opened ahead comes at its step, without another call") {
  Eight eight;
  const auto function = std::make_shared<Counting>();
  function->fails_at = 6;
  auto loader = eight.loader({.threads = 1, .prefetch = 1, .dtype = Element::s16}, function);
  auto first = take(loader);
  CHECK(function->was_called(16));
  loader.give_back(*first);
  std::uint64_t step = 0;
  for (;;) {
    auto batch = loader.next_until(soon());
    if (!batch) {
      CHECK(batch.error().error.message == "it failed");
      CHECK(batch.error().step > step);
      break;
    }
    REQUIRE(batch->has_value());
    step = (*batch)->step();
    loader.give_back(**batch);
  }
  const int calls = function->calls;
  CHECK(error_of(loader).error.message == "it failed");
  CHECK(function->calls == calls);
}

TEST_CASE("streams that are opened ahead are bounded in number and in memory") {
  MemoryCatalog catalog{FrameType{}};
  for (int i = 0; i < 400; ++i) catalog.add_numbered(8);
  std::uint64_t stream = 0;
  const auto open_all = [&](OpenStreams& open) {
    for (stream = 0; stream < 400 && open.has_room(); ++stream) {
      const PlannedRow row = opening_row(stream, 1);
      REQUIRE(open.opens(row, 0));
      open.open_ahead(row, {0, stream});
      CHECK_FALSE(open.opens(row, 0));
    }
    return catalog.open_readers();
  };
  for (const std::size_t threads : {1, 4}) {
    OpenStreams open(catalog, nullptr, 2, threads);
    CHECK(open_all(open) == static_cast<int>(256 / threads));
  }
  catalog.reader_memory = 100 << 20;
  OpenStreams open(catalog, nullptr, 2);
  CHECK(open_all(open) == 3);
}

TEST_CASE("streams that were opened ahead and not needed are closed after their batch") {
  MemoryCatalog catalog{FrameType{}};
  for (int i = 0; i < 4; ++i) catalog.add_numbered(8);
  OpenStreams open(catalog, nullptr, 2);
  for (std::uint64_t stream = 0; stream < 4; ++stream)
    open.open_ahead(opening_row(stream), {1, stream});
  open.drop_ahead({0, 9});
  CHECK(catalog.open_readers() == 4);
  open.drop_ahead({1, 2});
  CHECK(catalog.open_readers() == 1);
  REQUIRE(open.find(opening_row(3), 1).has_value());
  CHECK(catalog.opened_readers() == 4);
  open.drop_ahead({2, 0});
  CHECK(catalog.open_readers() == 1);  // it is in use
}
