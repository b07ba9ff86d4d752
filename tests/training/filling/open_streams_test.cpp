// SPDX-License-Identifier: Apache-2.0
#include "training/filling/streams/open_streams.h"

#include "tests/training/filling/loading.h"

using namespace millrace;
using namespace millrace::test;
using training::OpenStreams;
using training::PlannedRow;
using training::ReadError;
using training::StreamCopy;
using training::StreamFunction;

namespace {

constexpr std::size_t MiB = 1 << 20;

// 400 streams.
struct Streams {
  Streams() {
    for (int i = 0; i < 400; ++i) catalog.add_numbered(8);
  }

  MemoryCatalog catalog{FrameType{}};
};

PlannedRow row_of(std::uint64_t stream, std::uint32_t slot = 0) {
  PlannedRow row{.stream = stream, .slot = slot, .row = {}};
  row.row.size = 4;
  return row;
}

void use(OpenStreams& open, const PlannedRow& row) { REQUIRE(open.find(row, 0).has_value()); }

}  // namespace

TEST_CASE_METHOD(Streams, "without slots, the streams that were used last stay open") {
  OpenStreams open(catalog, nullptr, 0);
  for (std::uint64_t stream = 0; stream < 400; ++stream) use(open, row_of(stream));
  CHECK(catalog.open_readers() == 256);
  CHECK(open.is_open(row_of(399), 0));
  CHECK_FALSE(open.is_open(row_of(0), 0));
}

TEST_CASE_METHOD(Streams, "without slots, the memory of open streams is bounded") {
  OpenStreams open(catalog, nullptr, 0);
  for (std::uint64_t stream = 0; stream < 20; ++stream) use(open, row_of(stream));
  catalog.reader_memory = 100 * MiB;  // a stream has so much when it is used again
  for (std::uint64_t stream = 0; stream < 4; ++stream) use(open, row_of(stream));
  CHECK_FALSE(open.is_open(row_of(0), 0));
  for (const std::uint64_t stream : {1, 2, 3, 4}) CHECK(open.is_open(row_of(stream), 0));
  use(open, row_of(4));
  CHECK_FALSE(open.is_open(row_of(1), 0));
  CHECK(open.is_open(row_of(3), 0));  // of the call before
  CHECK(open.is_open(row_of(5), 0));  // needs no memory
}

TEST_CASE_METHOD(Streams, "memory that a stream gets after the next one was found counts, too") {
  OpenStreams open(catalog, nullptr, 0);
  use(open, row_of(0));
  use(open, row_of(1));
  catalog.reader_memory = 200 * MiB;  // of both
  use(open, row_of(2));
  CHECK_FALSE(open.is_open(row_of(0), 0));
  CHECK(open.is_open(row_of(1), 0));
}

TEST_CASE_METHOD(Streams,
                 "without slots, each of several threads keeps its part of the streams open") {
  OpenStreams open(catalog, nullptr, 0, 4);
  for (std::uint64_t stream = 1; stream < 400; stream += 4) use(open, row_of(stream));
  CHECK(catalog.open_readers() == 64);
}

TEST_CASE_METHOD(Streams, "a stream that needs more memory than all may have is open while used") {
  catalog.reader_memory = 300 * MiB;
  OpenStreams open(catalog, nullptr, 0);
  for (std::uint64_t stream = 0; stream < 20; ++stream) {
    use(open, row_of(stream));
    CHECK(open.is_open(row_of(stream), 0));
    CHECK(catalog.open_readers() <= 2);
  }
}

TEST_CASE_METHOD(Streams, "the stream of a slot stays open until its last row, with any memory") {
  catalog.reader_memory = 1000 * MiB;
  OpenStreams open(catalog, nullptr, 10);
  for (std::uint32_t slot = 0; slot < 10; ++slot) use(open, row_of(slot, slot));
  CHECK(catalog.open_readers() == 10);
  PlannedRow last = row_of(3, 3);
  last.row.flags = flag::end;
  open.close_if_ended(last);
  CHECK(catalog.open_readers() == 9);
  CHECK_FALSE(open.is_open(last, 0));
}

TEST_CASE_METHOD(Streams,
                 "a function changes each copy of a stream, and rows of one copy share it") {
  class Counting final : public StreamFunction {
   public:
    std::vector<std::uint32_t> copies;
    Result<void, ReadError> change(const StreamCopy& of, Content&) override {
      copies.push_back(of.copy);
      return {};
    }
  } function;
  OpenStreams changed(catalog, &function, 0);
  for (const std::uint32_t copy : {0, 0, 1, 1, 2}) {
    PlannedRow row = row_of(7);
    row.copy = copy;
    use(changed, row);
  }
  CHECK(function.copies == std::vector<std::uint32_t>{0, 1, 2});
}
