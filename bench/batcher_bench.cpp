// SPDX-License-Identifier: Apache-2.0
// Measures the batcher on one core: 1000 streams, batches of 64, with and without the values of the
// rows. The short runs of the lines alternate, so that other load on the machine affects all of
// them alike. The control only copies the same bytes.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

#include "batcher/batcher.h"
#include "bench/options.h"
#include "bench/paired_runs.h"
#include "gpu/host/batch_writer.h"
#include "gpu/host/slab_ring.h"
#include "tests/support/allocations.h"

using namespace millrace;
using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t streams = 1000, batch_rows = 64, slabs = 3;
constexpr std::uint32_t frames = 1600;  // per row: 100 ms at 16 kHz
constexpr std::size_t row_bytes = frames * 2;
constexpr std::size_t chunks = 8;  // per stream: 25.6 MB in all, more than the L2 cache
constexpr int rounds = 40;

// The source of the rows. In each round, every stream has one row, in the same random order.
class Streams {
 public:
  Streams() : buffers_(streams * chunks * row_bytes), order_(streams) {
    std::mt19937 random(1);
    for (std::byte& byte : buffers_) byte = static_cast<std::byte>(random());
    std::iota(order_.begin(), order_.end(), 0u);
    std::ranges::shuffle(order_, random);
  }

  const std::vector<std::uint32_t>& order() const { return order_; }

  Bytes window(std::uint32_t stream, std::uint64_t seq) const {
    const std::size_t chunk = stream * chunks + seq % chunks;
    return Bytes(buffers_).subspan(chunk * row_bytes, row_bytes);
  }

 private:
  std::vector<std::byte> buffers_;
  std::vector<std::uint32_t> order_;
};

// A lane that always has a credit: each batch closes as soon as it is full.
class Lane {
 public:
  explicit Lane(const Streams& sources) : sources_(sources) {
    for (std::uint32_t stream = 0; stream < streams; ++stream)
      (void)batcher_.open(StreamId{stream});  // slot = stream
  }

  template <class OnBatch>
  void run(OnBatch on_batch) {
    for (int round = 0; round < rounds; ++round, ++seq_)
      for (std::uint32_t stream : sources_.order()) {
        now_ += 1us;
        batcher_.add(Slot{stream}, row_of(stream));
        if (const auto choice = batcher_.next(now_, true)) {
          batcher_.close(*choice, now_, batch_);
          on_batch(batch_);
        }
      }
  }

 private:
  ReadyRow row_of(std::uint32_t stream) const {
    ReadyRow row;
    row.row.seq = seq_;
    row.row.begin = seq_ * frames;
    row.row.size = frames;
    row.window[0] = sources_.window(stream, seq_);
    row.arrived = row.ready = now_;
    return row;
  }

  const Streams& sources_;
  Batcher batcher_{{.slots = streams, .rows = batch_rows, .max_wait = 1h, .row_buckets = {}}};
  Batch batch_;
  Time now_{1h};
  std::uint64_t seq_ = 0;
};

// Writes every batch into the next slab.
class Slabs {
 public:
  explicit Slabs(Element dtype)
      : writer_({.frames = Element::s16, .dtype = dtype}, streams),
        ring_(slabs, layout_of({batch_rows, 0, frames, 1, dtype}).bytes) {}

  void write(const Batch& batch) {
    writer_.begin(next(), batch.rows, 0, frames);
    for (const BatchRow& row : batch.framed) {
      const Row& of = row.ready.row;
      writer_.add({number(row.slot), of.left, of.size, of.right, of.flags}, row.ready.window);
    }
    (void)writer_.finish();
  }

  MutableBytes next() { return ring_.slab(turn_++ % slabs); }

 private:
  BatchWriter writer_;
  SlabRing ring_;
  std::uint32_t turn_ = 0;
};

// Copies the same bytes into the same slabs with memcpy only.
class Control {
 public:
  explicit Control(const Streams& sources) : sources_(sources) {}

  void run() {
    for (int round = 0; round < rounds; ++round, ++seq_)
      for (std::uint32_t stream : sources_.order()) {
        if (row_ == batch_rows) row_ = 0;
        if (row_ == 0) slab_ = slabs_.next();
        std::memcpy(&slab_[row_++ * row_bytes], sources_.window(stream, seq_).data(), row_bytes);
      }
  }

 private:
  const Streams& sources_;
  Slabs slabs_{Element::s16};
  MutableBytes slab_;
  std::size_t row_ = 0;
  std::uint64_t seq_ = 0;
};

struct Measured {
  const char* name;
  std::function<void()> run;
  std::vector<double> nanoseconds = {};  // per row, of each run
  std::uint64_t allocated = 0;

  void measure() {
    const std::size_t before = test::allocations();
    const Time begin = Clock::now();
    run();
    const Duration took = Clock::now() - begin;
    allocated += test::allocations() - before;
    nanoseconds.push_back(static_cast<double>(took.count()) / (rounds * streams));
  }
};

void print(Measured& line) {
  std::ranges::sort(line.nanoseconds);
  const std::size_t runs = line.nanoseconds.size();
  const double median = line.nanoseconds[runs / 2];
  std::printf("%-38s %8.2f %8.1f %8.1f %8.1f %12.6f\n", line.name, 1000 / median, median,
              line.nanoseconds.front(), line.nanoseconds.back(),
              static_cast<double>(line.allocated) / static_cast<double>(runs * rounds * streams));
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t runs = 31;
  bool json = false;
  bench::Options("Measure the batcher on one core: rows per second, with and without values")
      .add("--runs", runs, "Runs of each line, in turn")
      .flag("--json", json, "Print rows of s16 and the control as a line of JSON")
      .parse(argc, argv);
  const Streams sources;
  Lane bare(sources), s16(sources), f32(sources);
  Slabs s16_slabs(Element::s16), f32_slabs(Element::f32);
  Control control(sources);
  std::array<Measured, 4> lines{{
      {"batcher, no values", [&] { bare.run([](const Batch&) {}); }},
      {"batcher, 3200 B rows into slabs", [&] { s16.run([&](auto& b) { s16_slabs.write(b); }); }},
      {"control: memcpy of the same rows", [&] { control.run(); }},
      {"batcher, 3200 B s16 -> 6400 B f32 rows",
       [&] { f32.run([&](auto& b) { f32_slabs.write(b); }); }},
  }};

  for (Measured& line : lines) line.run();  // lets vectors grow to their final size
  for (Measured& line : lines) line.nanoseconds.reserve(runs);
  for (std::size_t run = 0; run < runs; ++run)
    for (Measured& line : lines) line.measure();

  if (json) {
    std::printf("%s\n", bench::json_of(lines[1].nanoseconds, lines[2].nanoseconds).c_str());
    return 0;
  }
  std::printf("%u streams, batches of %u, %zu runs of %d rows each in turn\n", streams, batch_rows,
              runs, rounds * static_cast<int>(streams));
  std::printf("%-38s %8s %8s %8s %8s %12s\n", "", "M rows/s", "ns/row", "best", "worst",
              "allocs/row");
  for (Measured& line : lines) print(line);
}
