// SPDX-License-Identifier: Apache-2.0
// Measures the recorder as a service uses it, but without clients: chunks of many streams, in turn,
// through taps, pages and the recorder's thread into recording files. The control copies, checksums
// and writes the same frames, with as many syncs. The runs alternate.
#include <time.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "base/time.h"
#include "bench/options.h"
#include "bench/paired_runs.h"
#include "bench/slice_load.h"
#include "recording/writer/page_pool.h"
#include "recording/writer/page_writer.h"
#include "recording/writer/recorder.h"
#include "recording/writer/recorder_thread.h"
#include "service/recorder/stream_recording.h"
#include "tests/support/allocations.h"
#include "tests/support/temporary_directory.h"

namespace millrace::bench {
namespace {

using namespace recording;

constexpr std::size_t queue_bytes = 64 << 20;
constexpr std::uint64_t chunks_at_a_time = 16;

struct Arguments : SliceLoad {
  int runs = 5;
  bool json = false;
};

// CPU time of the process, and of the calling thread, in seconds.
double cpu_seconds(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}
double process_cpu() { return cpu_seconds(CLOCK_PROCESS_CPUTIME_ID); }
double thread_cpu() { return cpu_seconds(CLOCK_THREAD_CPUTIME_ID); }

struct Figures {
  double megabytes_per_second = 0;  // counts only frames
  double cpu = 0;                   // us per chunk: the process
  double io = 0;                    // us per chunk: the io thread
  std::size_t allocations = 0;      // by the io thread, after the first chunk of each stream
  std::uint64_t dropped = 0;        // slices
};

// One io thread and a recorder.
class Recording {
 public:
  Recording(const std::string& folder, const Arguments& args)
      : args_(args),
        recorder_({.directory = folder,
                   .file_size = std::size_t{1} << 40,
                   .min_free = 0,
                   .wall = [] { return Clock::now().time_since_epoch(); }},
                  pool_, stats_, notices_),
        thread_(recorder_, pool_, [this] { ended_.set_value(); }) {
    for (std::uint64_t i = 1; i <= args.streams; ++i) {
      taps_.push_back(std::make_unique<StreamRecording>(
          pages_, std::make_unique<StreamMeta>(meta_of(i)), false));
      taps_.back()->event({.kind = Event::Kind::open}, Clock::now(), {});
    }
  }

  Figures run(const std::vector<std::byte>& frames) {
    const double process_before = process_cpu(), thread_before = thread_cpu();
    const Time begin = Clock::now();
    double io = 0;
    Figures figures;
    for (std::uint64_t chunk = 0; chunk < args_.slices(); chunk += chunks_at_a_time) {
      while (!pages_.with_room(chunks_at_a_time * args_.slice)) std::this_thread::yield();
      const double before = thread_cpu();
      const std::size_t allocated = test::allocations();
      for (std::uint64_t i = chunk; i < chunk + chunks_at_a_time; ++i) add(i, frames);
      if (chunk >= args_.streams) figures.allocations += test::allocations() - allocated;
      io += thread_cpu() - before;
    }
    const double waited = thread_cpu() - thread_before - io;
    pages_.hand_over();
    thread_.finish();
    ended_.get_future().wait();
    const std::chrono::duration<double> wall = Clock::now() - begin;
    const auto chunks = static_cast<double>(args_.slices());
    figures.megabytes_per_second = chunks * static_cast<double>(args_.slice) / 1e6 / wall.count();
    figures.io = 1e6 * io / chunks;
    figures.cpu = 1e6 * (process_cpu() - process_before - waited) / chunks;
    figures.dropped = taps_stats_.dropped[DropReason::queue_full].value();
    return figures;
  }

 private:
  void add(std::uint64_t chunk, const std::vector<std::byte>& frames) {
    StreamRecording& tap = *taps_[chunk % taps_.size()];
    const std::uint64_t count = args_.slice / 2, seq = chunk / taps_.size();
    tap.event({.kind = Event::Kind::frames, .count = count}, now_,
              {frames_of(frames, chunk, args_.slice), Bytes()});
    tap.row(
        {.seq = seq, .begin = seq * count, .size = static_cast<std::uint32_t>(count), .mark = {}});
  }

  const Arguments& args_;
  RecordingStats stats_;
  TapStats taps_stats_;
  RecorderNotices notices_;
  PagePool pool_{queue_bytes, 1, 2};
  PageWriter pages_{pool_, 0, taps_stats_};
  Recorder recorder_;
  std::vector<std::unique_ptr<StreamRecording>> taps_;
  std::promise<void> ended_;
  const Time now_ = Clock::now();
  RecorderThread thread_;
};

Figures record(const Arguments& args, const std::vector<std::byte>& frames) {
  const TemporaryDirectory folder(args.folder);
  return Recording(folder.path(), args).run(frames);
}

Figures control(const Arguments& args, const std::vector<std::byte>& frames) {
  const double cpu = process_cpu();
  const Time begin = Clock::now();
  write_bare(args, frames);
  const std::chrono::duration<double> wall = Clock::now() - begin;
  const auto chunks = static_cast<double>(args.slices());
  return {.megabytes_per_second = chunks * static_cast<double>(args.slice) / 1e6 / wall.count(),
          .cpu = 1e6 * (process_cpu() - cpu) / chunks};
}

void run(const Arguments& args) {
  const auto frames = frames_of(args);
  std::vector<double> speed, bare_speed, cpu, bare_cpu, io;
  std::size_t allocations = 0;
  std::uint64_t dropped = 0;
  for (int i = -1; i < args.runs; ++i) {
    const Figures ours = record(args, frames);
    const Figures bare = control(args, frames);
    if (i < 0) continue;  // warms up
    speed.push_back(ours.megabytes_per_second);
    bare_speed.push_back(bare.megabytes_per_second);
    cpu.push_back(ours.cpu);
    bare_cpu.push_back(bare.cpu);
    io.push_back(ours.io);
    allocations += ours.allocations;
    dropped += ours.dropped;
  }
  if (args.json) {
    std::printf("{\"speed\":%s,\"cpu\":%s,\"io\":%s}\n", json_of(speed, bare_speed).c_str(),
                json_of(cpu, bare_cpu).c_str(), json_of(io).c_str());
    return;
  }
  std::printf("%llu streams, chunks of %zu bytes, %llu MiB, commits of 4 MiB, with fdatasync\n",
              static_cast<unsigned long long>(args.streams), args.slice,
              static_cast<unsigned long long>(args.megabytes));
  std::printf("  %-30s %8.0f MB/s %8.2f us of CPU per chunk\n", "recorder", median(speed),
              median(cpu));
  std::printf("  %-30s %8.0f MB/s %8.2f us\n", "bare copy, checksum, write", median(bare_speed),
              median(bare_cpu));
  std::printf("  %-30s %8.2f      %8.2f\n", "ratio", median(speed) / median(bare_speed),
              median(cpu) / median(bare_cpu));
  std::printf("  %-30s %22.2f us\n", "the io thread's part", median(io));
  std::printf("  %-30s %19zu\n", "its allocations", allocations);
  std::printf("  %-30s %19llu\n", "dropped slices", static_cast<unsigned long long>(dropped));
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  millrace::bench::Arguments args;
  millrace::bench::Options("Measures the recorder: taps, pages, thread and recording files.")
      .add("--folder", args.folder, "Where the files are made")
      .add("--streams", args.streams, "Streams in turn")
      .add("--slice", args.slice, "Bytes of frames in a chunk")
      .add("--mebibytes", args.megabytes, "Bytes of frames in a file")
      .add("--runs", args.runs, "Runs of each program")
      .flag("--json", args.json, "Prints all runs, for bench/compare")
      .parse(argc, argv);
  try {
    millrace::bench::run(args);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "recorder_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
