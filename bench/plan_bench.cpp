// SPDX-License-Identifier: Apache-2.0
// Measures plans of training batches on one core: how long an epoch is distributed, what it keeps
// in memory, and what a row and a start cost. Without options: 1.25 million streams with about 10^8
// chunks.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "bench/options.h"
#include "tests/support/allocations.h"
#include "training/contract/plan_options.h"
#include "training/plans/make_plan.h"
#include "training/plans/padding.h"

using namespace millrace;
using namespace millrace::training;

namespace {

constexpr std::uint32_t body = 1600;  // 100 ms at 16 kHz

// Lengths as in a mapped index.
class Lengths final : public Catalog {
 public:
  // Log-normal lengths: half of the streams are longer than `median` chunks.
  Lengths(std::size_t streams, double median, double sigma) : frames_(streams) {
    std::mt19937_64 random(1);
    std::lognormal_distribution<double> chunks(std::log(median), sigma);
    for (std::uint64_t& one : frames_) one = 1 + static_cast<std::uint64_t>(body * chunks(random));
  }
  // Gives each stream a flush every 100 chunks.
  void add_events() { events_ = true; }

  const FrameType& frame_type() const override { return type_; }
  std::uint64_t size() const override { return frames_.size(); }
  std::uint64_t frames(std::uint64_t stream) const override { return frames_[stream]; }
  std::string name(std::uint64_t stream) const override { return std::to_string(stream); }
  bool has_events(std::uint64_t) const override { return events_; }
  std::vector<InnerEvent> events(std::uint64_t stream) const override {
    std::vector<InnerEvent> events;
    for (std::uint64_t at = 100 * body; at < frames_[stream]; at += 100 * body)
      events.push_back({{.kind = Event::Kind::flush}, at});
    return events;
  }
  std::uint64_t digest() const override { return 0; }
  std::unique_ptr<CatalogReader> reader() const override { return nullptr; }

 private:
  FrameType type_;
  std::vector<std::uint64_t> frames_;
  bool events_ = false;
};

// The time that this thread has computed: that of other programs does not count.
double milliseconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

// The shortest of some runs: others are disturbed by other programs.
template <class Run>
double fastest(int runs, Run run) {
  double best = 1e300;
  for (int i = 0; i < runs; ++i) {
    const double begin = milliseconds();
    run();
    best = std::min(best, milliseconds() - begin);
  }
  return best;
}

void print(const char* what, double value, const char* unit) {
  std::printf("%-64s %9.2f %s\n", what, value, unit);
}

PlanOptions options_of(PlanMode mode, std::uint32_t rows) {
  PlanOptions options;
  options.mode = mode;
  options.chunk.emplace();
  options.chunk->spec.size = body;
  (mode == PlanMode::stateful ? options.slots : options.rows) = rows;
  return options;
}

std::unique_ptr<Plan> plan_of(const Catalog& catalog, const PlanOptions& options) {
  auto plan = make_plan(catalog, options, {});
  if (!plan) throw std::runtime_error(plan.error().message);
  return std::move(*plan);
}

// Nanoseconds per row of the first `rows` rows from `step` on.
double row_nanoseconds(const EpochPlan& epoch, std::uint64_t step, std::uint64_t rows) {
  const auto cursor = epoch.cursor({}, step, 1);
  PlannedBatch batch;
  cursor->next(batch);
  std::uint64_t read = 0;
  const double begin = milliseconds();
  while (read < rows && cursor->next(batch)) read += batch.framed.size();
  return 1e6 * (milliseconds() - begin) / static_cast<double>(read);
}

// Milliseconds until the first batch of a cursor.
double start(const EpochPlan& epoch, std::uint64_t step) {
  return fastest(5, [&] {
    PlannedBatch batch;
    epoch.cursor({}, step, 1)->next(batch);
  });
}

void measure_epoch(const Catalog& catalog, const char* name, const PlanOptions& options) {
  std::printf("%s\n", name);
  const std::size_t before = test::allocated_bytes();
  std::unique_ptr<Plan> plan;
  const double made = fastest(3, [&] {
    plan.reset();
    plan = plan_of(catalog, options);
  });
  const auto first = plan->epoch(0);
  std::unique_ptr<EpochPlan> second;
  const double distributed = fastest(5, [&] {
    second.reset();
    second = plan->epoch(1);
  });
  const auto kept = static_cast<double>(test::allocated_bytes() - before);
  print("  make_plan", made, "ms");
  print("  distribution of an epoch", distributed, "ms");
  print("  kept by two epochs, per stream", kept / static_cast<double>(catalog.size()), "bytes");
  const double at_0 = start(*first, 0);
  print("  from make_plan to the first batch", made + distributed + at_0, "ms");
  print("  start at step 0", at_0, "ms");
  const std::uint64_t far = std::min<std::uint64_t>(first->steps() * 9 / 10, 1'000'000);
  print(("  start at step " + std::to_string(far)).c_str(), start(*first, far), "ms");
  print("  a row", row_nanoseconds(*first, 0, 5'000'000), "ns");
  print(("  a row from step " + std::to_string(far)).c_str(),
        row_nanoseconds(*first, far, 5'000'000), "ns");
  print("  padding", 100 * padding_of(first->totals()), "%");
}

// The cost of a start in the middle of long streams with inner events.
void measure_events(const char* name) {
  Lengths catalog(64, 36'000, 0.1);
  catalog.add_events();
  const auto plan = plan_of(catalog, options_of(PlanMode::stateful, 64));
  const auto epoch = plan->epoch(0);
  const std::uint64_t step = 30'000;
  const double per_row = 1e6 * (start(*epoch, step) - start(*epoch, 0)) / (64.0 * step);
  std::printf("%s\n", name);
  print("  start, for each row of an open stream before it", per_row, "ns");
  print("  a row", row_nanoseconds(*epoch, 0, 1'000'000), "ns");
}

void measure_random(const char* name) {
  const Lengths catalog(12'500, 50, 1);
  PlanOptions options = options_of(PlanMode::stateful, 64);
  options.chunk->sizes = {.by = SizeRule::By::random,
                          .sizes = SizeList(std::vector<std::uint32_t>{800, 1600, 3200})};
  measure_epoch(catalog, name, options);
}

void measure_padding(const char* name) {
  std::printf("%s\n", name);
  for (const double sigma : {0.3, 0.5, 0.6, 0.7}) {
    const Lengths catalog(4000, 1800, sigma);
    const auto plan = plan_of(catalog, options_of(PlanMode::stateful, 320));
    print(("  sigma " + std::to_string(sigma)).c_str(), 100 * padding_of(plan->epoch(0)->totals()),
          "%");
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t streams = 1'250'000;
  std::uint32_t slots = 64;
  std::string only;
  bench::Options("Measures plans of training batches")
      .add("--streams", streams, "Streams of the catalog")
      .add("--slots", slots, "Slots, and rows of a stateless batch")
      .add("--only", only, "Only the measurements whose name contains this")
      .parse(argc, argv);
  const auto measure = [&](const char* name, auto run) {
    if (std::string(name).find(only) != std::string::npos) run(name);
  };

  const Lengths catalog(streams, 48.5, 1);
  std::uint64_t chunks = 0;
  for (std::uint64_t i = 0; i < catalog.size(); ++i)
    chunks += (catalog.frames(i) + body - 1) / body;
  std::printf("%zu streams, %.1f million chunks\n", streams, static_cast<double>(chunks) / 1e6);
  const auto measure_plan = [&](const char* name, const PlanOptions& options) {
    measure(name, [&](const char* title) { measure_epoch(catalog, title, options); });
  };
  measure_plan("stateful", options_of(PlanMode::stateful, slots));
  PlanOptions in_order = options_of(PlanMode::stateful, slots);
  in_order.shuffle = false;
  measure_plan("stateful without shuffling", in_order);
  measure_plan("stateless", options_of(PlanMode::stateless, slots));
  PlanOptions windows = options_of(PlanMode::stateless, slots);
  windows.shuffle_window = 1000;
  measure_plan("stateless, shuffle_window = 1000", windows);
  PlanOptions whole = options_of(PlanMode::stateless, slots);
  whole.chunk.reset();
  whole.max_padded_frames = 64 * 100 * body;
  measure_plan("whole streams", whole);
  measure("rule random, 12500 streams", measure_random);
  measure("streams of an hour with inner events", measure_events);
  measure("padding of 4000 log-normal calls on 320 slots", measure_padding);
}
