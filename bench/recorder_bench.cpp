// SPDX-License-Identifier: Apache-2.0
// Measures the recorder as the service uses it: a thread passes chunks of many streams, in turn, to
// their taps, and the recorder's thread writes them to segment files. The control is one thread
// that copies, checksums and writes the same frames, with as many syncs. The runs alternate. The
// files are made in a new directory and deleted after each run.
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/time.h"
#include "bench/bare_recording.h"
#include "bench/paired_runs.h"
#include "recording/writer/recorder_thread.h"
#include "service/log/wall_clock.h"
#include "service/recording/stream_recording.h"
#include "tests/support/allocations.h"

namespace millrace::bench {
namespace {

using namespace recording;

struct Arguments {
  std::string folder = "/tmp";
  std::uint64_t streams = 2000;
  std::size_t chunk = 3200;  // bytes
  std::uint64_t megabytes = 512;
  std::size_t queue = 64;  // MiB
  int runs = 5;
  bool json = false;

  std::uint64_t chunks() const { return (megabytes << 20) / chunk; }
};

double seconds(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Figures {
  double speed = 0;        // MB/s of frames
  double cpu = 0;          // us of the process per chunk
  double io_cpu = 0;       // us of the thread with the taps per chunk
  double allocations = 0;  // of the process per chunk, in the second half
  double dropped = 0;      // slices
};

class Taps {
 public:
  Taps(PageWriter& pages, std::uint64_t streams) {
    for (std::uint64_t i = 1; i <= streams; ++i)
      taps_.push_back(std::make_unique<StreamRecording>(
          pages,
          std::make_unique<StreamMeta>(
              StreamMeta{.number = i,
                         .name = "load-" + std::to_string(i),
                         .pipeline = "asr",
                         .rule = R"({"size":1600,"step":1600,"first":1600,"left":0,"right":0})",
                         .client = R"({"format":"s16le","rate":16000,"channels":1})",
                         .opened_wall = wall_clock().count(),
                         .opened_steady = to_wire(Clock::now())}),
          false));
    for (auto& tap : taps_) tap->event({.kind = Event::Kind::open}, Clock::now(), {});
  }

  void chunk(std::uint64_t number, Bytes frames) {
    taps_[number % taps_.size()]->event({.kind = Event::Kind::frames, .count = frames.size() / 2},
                                        Clock::now(), {frames, Bytes()});
  }
  void end() {
    for (auto& tap : taps_) {
      tap->event({.kind = Event::Kind::end}, Clock::now(), {});
      tap->closed(StreamClosing::end, true);
    }
  }

 private:
  std::vector<std::unique_ptr<StreamTap>> taps_;
};

Figures record(const std::string& path, const Arguments& args,
               const std::vector<std::byte>& frames) {
  RecordingStats stats;
  TapStats tap_stats;
  RecorderNotices notices;
  PagePool pages(args.queue << 20, 1, 2);
  PageWriter writer(pages, 0, tap_stats);
  Recorder recorder({.directory = path, .min_free = 0, .wall = wall_clock}, pages, stats, notices);
  std::atomic<bool> ended = false;
  std::optional<RecorderThread> thread(std::in_place, recorder, pages, [&] { ended = true; });
  Taps taps(writer, args.streams);
  Figures figures;
  const Time begun = Clock::now();
  const double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
  double io_cpu = 0;
  std::size_t allocations = 0;
  for (std::uint64_t first = 0; first < args.chunks();) {
    // The queue is never full.
    while (first * args.chunk > stats.written_bytes.value() + (args.queue << 19))
      std::this_thread::sleep_for(std::chrono::microseconds(500));
    const std::uint64_t last = std::min<std::uint64_t>(first + 200, args.chunks());
    const double before = seconds(CLOCK_THREAD_CPUTIME_ID);
    const std::uint64_t half = args.chunks() / 2;
    if (first <= half && last > half) allocations = test::allocations();
    for (; first < last; ++first) taps.chunk(first, part_of(frames, first, args.chunk));
    io_cpu += seconds(CLOCK_THREAD_CPUTIME_ID) - before;
  }
  allocations = test::allocations() - allocations;
  taps.end();
  writer.hand_over();
  thread->finish();
  thread.reset();
  const auto chunks = static_cast<double>(args.chunks());
  const std::chrono::duration<double> wall = Clock::now() - begun;
  figures.speed = chunks * static_cast<double>(args.chunk) / 1e6 / wall.count();
  figures.cpu = 1e6 * (seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu) / chunks;
  figures.io_cpu = 1e6 * io_cpu / chunks;
  figures.allocations = 2 * static_cast<double>(allocations) / chunks;
  for (const auto& drops : {&stats.dropped, &tap_stats.dropped})
    for (const DropReason reason :
         {DropReason::queue_full, DropReason::io_error, DropReason::disk_full, DropReason::memory})
      figures.dropped += static_cast<double>((*drops)[reason].value());
  return figures;
}

Figures control(const Folder& folder, const Arguments& args, const std::vector<std::byte>& frames) {
  const double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
  const Time begun = Clock::now();
  copy_and_write(folder.create(), args.chunks(), args.chunk, true, frames);
  const std::chrono::duration<double> wall = Clock::now() - begun;
  const auto chunks = static_cast<double>(args.chunks());
  return {.speed = chunks * static_cast<double>(args.chunk) / 1e6 / wall.count(),
          .cpu = 1e6 * (seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu) / chunks};
}

std::vector<double> all(const std::vector<Figures>& runs, double Figures::*figure) {
  std::vector<double> values;
  for (const Figures& run : runs) values.push_back(run.*figure);
  return values;
}

double median(const std::vector<Figures>& runs, double Figures::*figure) {
  std::vector<double> values = all(runs, figure);
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void run(const Arguments& args) {
  const auto frames = frames_of(args.chunk);
  std::vector<Figures> ours, bare;
  for (int i = -1; i < args.runs; ++i) {
    const Figures recorded = [&] {
      const Folder folder(args.folder);
      return record(folder.path(), args, frames);
    }();
    const Figures bared = control(Folder(args.folder), args, frames);
    if (i < 0) continue;  // warms up
    ours.push_back(recorded);
    bare.push_back(bared);
  }
  if (args.json) {
    std::printf("{\"speed\":%s,\"cpu\":%s}\n",
                json_of(all(ours, &Figures::speed), all(bare, &Figures::speed)).c_str(),
                json_of(all(ours, &Figures::cpu), all(bare, &Figures::cpu)).c_str());
    return;
  }
  const double speed = median(ours, &Figures::speed), cpu = median(ours, &Figures::cpu);
  std::printf("%llu streams, chunks of %zu bytes, %llu MiB, synced\n",
              static_cast<unsigned long long>(args.streams), args.chunk,
              static_cast<unsigned long long>(args.megabytes));
  std::printf("  recorder      %6.0f MB/s %6.2f us of CPU per chunk, %.2f of it for the tap\n",
              speed, cpu, median(ours, &Figures::io_cpu));
  std::printf("  control       %6.0f MB/s %6.2f us\n", median(bare, &Figures::speed),
              median(bare, &Figures::cpu));
  std::printf("  ratio         %6.2f      %6.2f\n", speed / median(bare, &Figures::speed),
              cpu / median(bare, &Figures::cpu));
  std::printf("  allocations per chunk %.4f, dropped slices %.0f\n",
              median(ours, &Figures::allocations), median(ours, &Figures::dropped));
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  millrace::bench::Arguments args;
  CLI::App app("Measures the recorder: taps, queue, thread, and segment files.");
  app.add_option("--folder", args.folder, "Where the files are made")->capture_default_str();
  app.add_option("--streams", args.streams, "Streams in turn")->capture_default_str();
  app.add_option("--chunk", args.chunk, "Bytes of a chunk")->capture_default_str();
  app.add_option("--mebibytes", args.megabytes, "Bytes of frames in a run")->capture_default_str();
  app.add_option("--queue", args.queue, "MiB of the queue to the recorder")->capture_default_str();
  app.add_option("--runs", args.runs, "Runs of each program")->capture_default_str();
  app.add_flag("--json", args.json, "Prints all runs, for bench/compare");
  CLI11_PARSE(app, argc, argv);
  try {
    millrace::bench::run(args);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "recorder_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
