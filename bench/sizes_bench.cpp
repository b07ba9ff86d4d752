// SPDX-License-Identifier: Apache-2.0
// Measures what a choice of sizes costs a stream for each row: streams of one fixed size, adaptive
// and random streams, with the same messages. All rows have 100 ms. The runs alternate, so that
// other load on the machine affects all of them alike.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "bench/options.h"
#include "streams/stream.h"
#include "tests/support/allocations.h"
#include "tests/support/stream_ends.h"

using namespace millrace;
using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t size = 1600;  // frames

// Rows that are counted and dropped.
class Rows final : public StreamHost {
 public:
  void add(StreamId, ReadyRow row) override {
    last = row.row.seq;
    notify = row.notify_batched;
    ++count;
  }

  std::uint64_t last = 0, count = 0;
  bool notify = false;
};

struct Cost {
  double microseconds;  // per row
  double allocations;   // per row
};

// Each row is done `done_after` after it was ready, the worker takes it at once.
Cost cost(SizeRule::By by, bool has_sizes, Duration done_after, std::uint64_t rows) {
  StreamStats stats;
  std::uint32_t chosen = size;
  BlockPool pool(FrameBuffer::block_bytes(2, size), 10, stats.buffer);
  Rows lane;
  test::CapturedClient client;
  StreamSettings settings{
      .name = "mic", .chunk = {.spec = {.size = size}}, .frames_limit = 160'000};
  if (has_sizes)
    settings.chunk.sizes = {.by = by,
                            .sizes = SizeList(std::vector<std::uint32_t>{size, size + 1})};
  if (by == SizeRule::By::random) settings.chunk.sizes.per = SizeRule::Per::chunk;
  Stream stream(settings, {.host = lane, .blocks = pool, .stats = stats, .chosen_size = chosen},
                client);
  const std::vector<std::byte> message(std::size_t{size} * 2);
  Time now{1h};
  std::uint64_t done = 0;
  const auto round = [&] {
    stream.frames(message, now);
    for (; done < lane.count; ++done) {
      if (lane.notify) stream.batched(done, now);
      RowDone row{.seq = done};
      row.at.arrived = row.at.ready = row.at.closed = row.at.copied = row.at.taken = now;
      row.at.done = now + done_after;
      stream.done(std::move(row), now);
    }
    now += 100ms;
  };
  for (int i = 0; i < 100; ++i) round();
  const std::size_t before = test::allocations();
  const std::uint64_t first = lane.count;
  const Time began = Clock::now();
  while (lane.count < first + rows) round();
  const Duration took = Clock::now() - began;
  const auto cut = static_cast<double>(lane.count - first);
  return {std::chrono::duration<double, std::micro>(took).count() / cut,
          static_cast<double>(test::allocations() - before) / cut};
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t rows = 200'000;
  std::size_t rounds = 15;
  bench::Options("Measure the cost of the choice of a size for a stream, per row")
      .add("--rows", rows, "Rows of each run")
      .add("--rounds", rounds, "Runs of each line")
      .parse(argc, argv);

  struct Line {
    const char* name;
    SizeRule::By by;
    bool has_sizes;
    Duration done_after;
    std::vector<double> times{};
    double allocations = 0;
  };
  using By = SizeRule::By;
  Line lines[] = {{"one size", By::fixed, false, 10ms},
                  {"fixed, of several sizes", By::fixed, true, 10ms},
                  {"adaptive", By::adaptive, true, 10ms},
                  {"adaptive, rows take long: with notices", By::adaptive, true, 150ms},
                  {"random", By::random, true, 10ms}};
  for (std::size_t round = 0; round < rounds; ++round)
    for (Line& line : lines) {
      const Cost one = cost(line.by, line.has_sizes, line.done_after, rows);
      line.times.push_back(one.microseconds);
      line.allocations = std::max(line.allocations, one.allocations);
    }
  const double base = median(lines[0].times);
  for (const Line& line : lines)
    std::printf("%-40s %6.3f us a row, %+6.3f; %.4f allocations\n", line.name, median(line.times),
                median(line.times) - base, line.allocations);
}
