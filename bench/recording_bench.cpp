// SPDX-License-Identifier: Apache-2.0
// Measures FileWriter: slices of many streams, in turn, into recording files, with a commit every
// 4 MiB. The control copies, checksums and writes the same frames, with as many syncs. The runs
// alternate. The files are made in a new directory and deleted after each run.
#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <system_error>
#include <vector>

#include "base/time.h"
#include "bench/options.h"
#include "bench/paired_runs.h"
#include "bench/slice_load.h"
#include "recording/files/file_writer.h"

namespace millrace::bench {
namespace {

using namespace recording;

struct Arguments : SliceLoad {
  int runs = 5;
  bool json = false;
};

void check(const Result<void, std::error_code>& result) {
  if (!result) throw std::system_error(result.error(), "write");
}

struct Figures {
  double megabytes_per_second = 0;  // counts only frames
  double cpu = 0;                   // us per slice
};

template <class Run>
Figures measure(const Arguments& args, Run run) {
  const double cpu = process_cpu();
  const Time begin = Clock::now();
  run();
  const std::chrono::duration<double> wall = Clock::now() - begin;
  const auto slices = static_cast<double>(args.slices());
  return {.megabytes_per_second = slices * static_cast<double>(args.slice) / 1e6 / wall.count(),
          .cpu = 1e6 * (process_cpu() - cpu) / slices};
}

// The streams, and how much of each is written.
struct Stream {
  StreamMeta meta{};
  std::uint32_t slices = 0;
};

std::vector<Stream> streams_of(const Arguments& args) {
  std::vector<Stream> streams(args.streams);
  for (std::uint64_t i = 0; i < args.streams; ++i) streams[i].meta = meta_of(i + 1);
  return streams;
}

void record(FileDescriptor file, const Arguments& args, const std::vector<std::byte>& frames) {
  auto writer = FileWriter::begin(
      std::move(file), {.file = 1, .run = std::string(32, '0'), .id = std::string(32, '1')});
  if (!writer) throw std::system_error(writer.error(), "write");
  std::vector<Stream> streams = streams_of(args);
  std::array<TimedEvent, 1> events{};
  events[0].event = {.kind = Event::Kind::frames, .count = args.slice / 2};
  const auto commit = [&] {
    check(writer->write());
    if (args.sync) check(writer->sync());
  };
  for (std::uint64_t i = 0; i < args.slices(); ++i) {
    Stream& stream = streams[i % streams.size()];
    const Bytes part = frames_of(frames, i, args.slice);
    writer->add(stream.meta, stream.slices, stream.meta.opened_wall,
                {.stream = stream.meta.number,
                 .first_event = stream.slices + 1,
                 .begin = stream.slices * events[0].event.count,
                 .events = events},
                {&part, 1});
    ++stream.slices;
    if (writer->uncommitted() >= commit_bytes) commit();
  }
  commit();
  check(writer->seal());
}

void print(const char* name, const std::vector<double>& speed, const std::vector<double>& cpu) {
  std::printf("  %-34s %10.0f MB/s %10.2f us per slice\n", name, median(speed), median(cpu));
}

void run(const Arguments& args) {
  const BenchFolder folder(args.folder);
  const auto frames = frames_of(args);
  std::vector<double> ours, control, ours_cpu, control_cpu;
  for (int i = -1; i < args.runs; ++i) {
    const Figures recorded = measure(args, [&] { record(folder.create(), args, frames); });
    const Figures bared = measure(args, [&] { write_bare(folder.create(), args, frames); });
    if (i < 0) continue;  // warms up
    ours.push_back(recorded.megabytes_per_second);
    ours_cpu.push_back(recorded.cpu);
    control.push_back(bared.megabytes_per_second);
    control_cpu.push_back(bared.cpu);
  }
  if (args.json) {
    std::printf("{\"speed\":%s,\"cpu\":%s}\n", json_of(ours, control).c_str(),
                json_of(ours_cpu, control_cpu).c_str());
    return;
  }
  std::printf("%llu streams, slices of %zu bytes, %llu MiB per file, %s\n",
              static_cast<unsigned long long>(args.streams), args.slice,
              static_cast<unsigned long long>(args.megabytes), args.sync ? "synced" : "not synced");
  print("recording files", ours, ours_cpu);
  print("bare copy, checksum, write", control, control_cpu);
  std::printf("  %-34s %10.2f      %10.2f\n", "ratio", median(ours) / median(control),
              median(ours_cpu) / median(control_cpu));
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  millrace::bench::Arguments args;
  millrace::bench::Options("Measures the speed of writing recording files.")
      .add("--folder", args.folder, "Where the files are made")
      .add("--streams", args.streams, "Streams in turn")
      .add("--slice", args.slice, "Bytes of frames in a slice")
      .add("--mebibytes", args.megabytes, "Bytes of frames in a file")
      .add("--runs", args.runs, "Runs of each program")
      .flag("!--no-sync", args.sync, "Does not call fdatasync")
      .flag("--json", args.json, "Prints all runs, for bench/compare")
      .parse(argc, argv);
  try {
    millrace::bench::run(args);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "recording_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
