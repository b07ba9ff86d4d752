// SPDX-License-Identifier: Apache-2.0
// Measures batches of a stateful plan in process, beside a bare gather of the same chunks into a
// tensor. The streams lie in memory, or in WAV files that are mapped or read.
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/options.h"
#include "bench/paired_runs.h"
#include "gpu/host/convert.h"
#include "training/catalogs/open_catalog.h"
#include "training/contract/plan_options.h"
#include "training/filling/loader.h"
#include "training/plans/make_plan.h"

namespace {

using namespace millrace;
namespace mt = millrace::training;

struct Settings {
  std::uint32_t streams = 400, slots = 64, chunk = 1600;
  std::uint64_t frames = 160'000;
  std::uint64_t rounds = 11;
  std::vector<std::uint32_t> threads = {0, 1, 2};
  std::string types = "all";
  std::string folder;
  bool read = false;
};

// Streams of equal length in memory.
class Streams final : public mt::Catalog {
 public:
  Streams(Element element, const Settings& settings)
      : type_{.element = element}, settings_(settings), bytes_(settings.frames * size_of(element)) {
    all_.resize(settings.streams * bytes_);
    for (std::size_t i = 0; i < all_.size(); i += size_of(element)) {
      const auto sample = static_cast<std::int16_t>(i * 7919);
      const float value = static_cast<float>(sample) / 32768;
      if (element == Element::s16) std::memcpy(&all_[i], &sample, 2);
      if (element == Element::f32) std::memcpy(&all_[i], &value, 4);
    }
  }

  Bytes stream(std::uint64_t number) const { return Bytes(all_).subspan(number * bytes_, bytes_); }

  const FrameType& frame_type() const override { return type_; }
  std::uint64_t size() const override { return settings_.streams; }
  std::uint64_t frames(std::uint64_t) const override { return settings_.frames; }
  std::string name(std::uint64_t stream) const override { return std::to_string(stream); }
  std::uint64_t digest() const override { return 1; }
  std::unique_ptr<mt::CatalogReader> reader() const override {
    return std::make_unique<Reader>(*this);
  }

 private:
  class Stream final : public mt::FrameReader {
   public:
    Stream(Element element, Bytes all) : element_(element), all_(all) {}
    Result<Bytes, mt::ReadError> frames(std::uint64_t begin, std::uint64_t count) override {
      const std::size_t frame = size_of(element_);
      return all_.subspan(begin * frame, count * frame);
    }
    Result<Bytes, mt::ReadError> entries(std::size_t, EntryRange) override { return Bytes(); }
    std::size_t memory() const override { return 0; }

   private:
    const Element element_;
    const Bytes all_;
  };
  class Reader final : public mt::CatalogReader {
   public:
    explicit Reader(const Streams& streams) : streams_(streams) {}
    Result<std::unique_ptr<mt::FrameReader>, mt::ReadError> open(std::uint64_t stream) override {
      return std::make_unique<Stream>(streams_.type_.element, streams_.stream(stream));
    }

   private:
    const Streams& streams_;
  };

  const FrameType type_;
  const Settings settings_;
  const std::size_t bytes_;
  std::vector<std::byte> all_;
};

std::shared_ptr<const mt::Catalog> catalog_of(Element element, const Settings& settings,
                                              bool mapped) {
  if (settings.folder.empty()) return std::make_shared<Streams>(element, settings);
  auto opened = mt::open_catalog({.path = settings.folder, .frames = element, .mapped = mapped});
  if (!opened) throw std::runtime_error(opened.error().message);
  return std::move(*opened);
}

std::shared_ptr<const mt::Plan> plan_of(const mt::Catalog& streams, const Settings& settings) {
  mt::PlanOptions options;
  options.chunk = ChunkRule{.spec = {.size = settings.chunk}};
  options.slots = settings.slots;
  auto plan = mt::make_plan(streams, options, {});
  if (!plan) throw std::runtime_error(plan.error().message);
  return std::move(*plan);
}

// CPU time of this thread: other programs on the machine do not count.
class ThreadTime {
 public:
  double seconds() const { return now() - begin_; }

 private:
  static double now() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }
  double begin_ = now();
};

class WallTime {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

 private:
  Time begin_ = Clock::now();
};

// The same chunks in the same order, into `buffers` tensors in turns.
class Gather {
 public:
  Gather(const mt::Catalog& streams, const mt::Plan& plan, Element dtype, const Settings& settings,
         std::size_t buffers)
      : reader_(streams.reader()),
        convert_(conversion(streams.frame_type().element, dtype)),
        row_bytes_(settings.chunk * size_of(dtype)),
        tensors_(buffers, std::vector<std::byte>(settings.slots * row_bytes_)) {
    for (std::uint64_t stream = 0; stream < streams.size(); ++stream)
      readers_.push_back(std::move(*reader_->open(stream)));
    const auto epoch = plan.epoch(0);
    const auto cursor = epoch->cursor({}, 0, 1);
    mt::PlannedBatch batch;
    while (cursor->next(batch)) {
      batches_.emplace_back();
      for (const auto& row : batch.framed)
        batches_.back().push_back(
            {readers_[row.stream]->frames(row.frame, row.row.size)->data(), row.row.size});
    }
  }

  // Seconds per batch.
  template <class Timer>
  double run() {
    const Timer timer;
    std::size_t next = 0;
    for (const auto& batch : batches_) {
      std::byte* to = tensors_[next++ % tensors_.size()].data();
      for (const Place& place : batch) {
        convert_(place.from, to, place.count);
        to += row_bytes_;
      }
    }
    return timer.seconds() / static_cast<double>(batches_.size());
  }

 private:
  struct Place {
    const std::byte* from;
    std::size_t count;
  };
  std::unique_ptr<mt::CatalogReader> reader_;
  std::vector<std::unique_ptr<mt::FrameReader>> readers_;  // keep the frames in place
  Convert convert_;
  std::size_t row_bytes_;
  std::vector<std::vector<std::byte>> tensors_;
  std::vector<std::vector<Place>> batches_;
};

// Seconds per batch of an epoch, of which the consumer keeps the last `kept` batches.
template <class Timer>
double run(mt::Loader& loader, std::size_t kept) {
  std::deque<WorkerBatch> held;
  std::size_t batches = 0;
  const Timer timer;
  for (;;) {
    auto batch = loader.next_until(Time::max());
    if (!batch) throw std::runtime_error(batch.error().error.message);
    if (!*batch) break;
    ++batches;
    held.push_back(std::move(**batch));
    if (held.size() < kept) continue;
    loader.give_back(held.front());
    held.pop_front();
  }
  const double seconds = timer.seconds();
  for (WorkerBatch& batch : held) loader.give_back(batch);
  return seconds / static_cast<double>(batches);
}

// The medians of ours, of the control, and of their ratio.
template <class Timer>
std::array<double, 3> rounds(mt::Loader& loader, Gather& gather, std::size_t kept,
                             const Settings& settings) {
  (void)run<Timer>(loader, kept);
  (void)gather.run<Timer>();
  std::vector<double> ours, control, ratios;
  for (std::uint64_t round = 0; round < settings.rounds; ++round) {
    ours.push_back(run<Timer>(loader, kept));
    control.push_back(gather.run<Timer>());
    ratios.push_back(control.back() / ours.back());
  }
  return {bench::median(ours), bench::median(control), bench::median(ratios)};
}

void compare(Element from, Element dtype, const Settings& settings) {
  static constexpr const char* names[] = {"s16", "f16", "f32"};
  // The control reads in place.
  const auto streams = catalog_of(from, settings, !settings.read),
             in_place = settings.read ? catalog_of(from, settings, true) : streams;
  const auto plan = plan_of(*streams, settings);
  for (const std::size_t kept : {1, 64}) {
    Gather gather(*in_place, *plan, dtype, settings, kept);
    for (const std::uint32_t threads : settings.threads) {
      mt::Loader loader(streams, plan, {.threads = threads, .buffers = 80, .dtype = dtype});
      const auto [ours, control, ratio] = threads == 0
                                              ? rounds<ThreadTime>(loader, gather, kept, settings)
                                              : rounds<WallTime>(loader, gather, kept, settings);
      std::printf(
          "%s to %s, %2zu buffers, %u threads: %6.1f us per batch, gather %6.1f us, ratio %.2f\n",
          names[static_cast<std::size_t>(from)], names[static_cast<std::size_t>(dtype)], kept,
          threads, 1e6 * ours, 1e6 * control, ratio);
      std::fflush(stdout);
    }
  }
}

// The time of the plan alone.
void read_plan(const Settings& settings) {
  const auto streams = std::make_shared<Streams>(Element::s16, settings);
  const auto plan = plan_of(*streams, settings);
  const auto epoch = plan->epoch(0);
  const ThreadTime timer;
  const auto cursor = epoch->cursor({}, 0, 1);
  mt::PlannedBatch batch;
  while (cursor->next(batch)) {
  }
  std::printf("plan alone: %.2f us per batch\n",
              1e6 * timer.seconds() / static_cast<double>(epoch->steps()));
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  bench::Options("Batches of a plan in process, beside a bare gather")
      .add("--streams", settings.streams, "streams")
      .add("--frames", settings.frames, "frames of a stream")
      .add("--slots", settings.slots, "rows of a batch")
      .add("--chunk", settings.chunk, "frames of a row")
      .add("--rounds", settings.rounds, "measurements of each")
      .add("--threads", settings.threads, "threads of the loader")
      .add("--types", settings.types, "s16-f32, s16-s16, f32-f32 or all")
      .add("--folder", settings.folder, "a folder of 16-bit WAV files instead, mapped")
      .flag("--read", settings.read, "the files are not mapped")
      .parse(argc, argv);
  read_plan(settings);
  const auto chosen = [&](const char* types) {
    return settings.types == "all" || settings.types == types;
  };
  if (chosen("s16-f32")) compare(Element::s16, Element::f32, settings);
  if (chosen("s16-s16")) compare(Element::s16, Element::s16, settings);
  if (chosen("f32-f32")) compare(Element::f32, Element::f32, settings);
}
