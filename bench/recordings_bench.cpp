// SPDX-License-Identifier: Apache-2.0
// Writes directories of recordings, and measures `millrace recordings ls` and `verify` on them, in
// process. Beside `verify`, reads and checksums the same bytes once. The page cache is warm.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <optional>
#include <span>
#include <stdexcept>
#include <streambuf>
#include <string>
#include <utility>
#include <vector>

#include "bench/options.h"
#include "chunker/rule_json.h"
#include "commands/recorded/list_streams.h"
#include "commands/recorded/verify/verify.h"
#include "recording/files/file.h"
#include "recording/files/file_writer.h"
#include "recording/format/checksums.h"
#include "tests/support/temporary_directory.h"

using namespace millrace;
using namespace millrace::recording;

namespace {

constexpr std::uint64_t file_bytes = 256 << 20;

// The value of a result that must not be an error.
template <class T, class E>
T expect(Result<T, E> result) {
  if (!result) throw std::runtime_error("a recording cannot be written");
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

// Writes streams to a directory, in slices of one event each. Files have the default size.
class Generator {
 public:
  explicit Generator(const std::string& path)
      : directory_(std::move(*Directory::open(path, Directory::For::writing))) {}

  // Streams of three slices, one after the other.
  void short_streams(std::uint64_t count, std::uint32_t frames) {
    for (std::uint64_t number = 1; number <= count; ++number) {
      const StreamMeta meta = meta_of(number);
      add(meta, 0, {.kind = Event::Kind::open}, 0, frames);
      add(meta, 1, {.kind = Event::Kind::frames, .count = frames}, 0, frames);
      add(meta, 2, {.kind = Event::Kind::end}, frames, frames);
    }
    seal();
  }
  // `count` streams at a time, with a slice of `frames` each in turn.
  void long_streams(std::uint64_t count, std::uint32_t slices, std::uint32_t frames) {
    std::vector<StreamMeta> streams;
    for (std::uint64_t number = 1; number <= count; ++number) streams.push_back(meta_of(number));
    for (std::uint32_t slice = 0; slice < slices; ++slice) {
      const bool first = slice == 0, last = slice + 1 == slices;
      for (const StreamMeta& meta : streams)
        add(meta, slice,
            {.kind = first  ? Event::Kind::open
                     : last ? Event::Kind::end
                            : Event::Kind::frames,
             .count = first || last ? 0 : frames},
            first ? 0 : std::uint64_t{slice - 1} * frames, frames * std::uint64_t{slices - 2});
    }
    seal();
  }

  const Directory& directory() const { return directory_; }

 private:
  StreamMeta meta_of(std::uint64_t number) const {
    return {.number = number,
            .name = "caller-" + std::to_string(number),
            .pipeline = "asr",
            .rule = to_json(ChunkRule{.spec = {.size = 1600}}),
            .opened_wall = 1'764'017'721'000'000'000 + static_cast<std::int64_t>(number) * 1000,
            .opened_steady = 1};
  }

  void add(const StreamMeta& meta, std::uint32_t number, const Event& event, std::uint64_t begin,
           std::uint64_t all_frames) {
    if (writer_ &&
        (writer_->size() > file_bytes ||
         (!writer_->has_channel(meta.number) && writer_->channels() == FileWriter::most_channels)))
      seal();
    if (!writer_) this->begin(meta.number);
    values_.resize(event.kind == Event::Kind::frames ? event.count : 0, std::int16_t{77});
    const TimedEvent timed{event, from_wire(1'000'000 * (number + 1))};
    Slice slice{.stream = meta.number,
                .first_event = number,
                .begin = begin,
                .events = std::span(&timed, 1)};
    if (event.kind == Event::Kind::end)
      slice.closing = StreamTotals{.frames = all_frames, .complete = true};
    const Bytes frames = std::as_bytes(std::span(values_));
    writer_->add(meta, number, meta.opened_wall, slice, std::span(&frames, 1));
    if (writer_->uncommitted() > (4 << 20)) expect(writer_->write());
  }
  void begin(std::uint64_t first_stream) {
    FileHead head;
    head.file = ++file_;
    head.run = std::string(32, 'a');
    head.id = std::string(32, 'b');
    head.first_stream = first_stream;
    writer_ = expect(FileWriter::begin(expect(directory_.create(file_)), head));
  }
  void seal() {
    expect(writer_->seal());
    writer_.reset();
  }

  Directory directory_;
  std::optional<FileWriter> writer_;
  FileNumber file_ = 0;
  std::vector<std::int16_t> values_;
};

// Output that is only counted.
class Counted final : public std::streambuf {
 public:
  std::uint64_t bytes = 0;

 private:
  std::streamsize xsputn(const char*, std::streamsize count) override {
    bytes += static_cast<std::uint64_t>(count);
    return count;
  }
  int overflow(int c) override {
    ++bytes;
    return c;
  }
};

double seconds_of(auto&& work) {
  const Time begin = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void measure_ls(std::uint64_t streams) {
  TemporaryDirectory path;
  Generator generator(path.path());
  generator.short_streams(streams, 8);
  for (const char* state : {"catalog made anew", "catalog present", "catalog present"}) {
    Counted counted;
    std::ostream out(&counted);
    const double time = seconds_of([&] {
      const auto recordings = Recordings::open(path.path());
      if (!recordings) throw std::runtime_error(recordings.error());
      recordings::list_streams(**recordings, {}, recordings::ListForm::table, out);
    });
    std::printf("ls of %llu streams, %s: %.2f s, %.0f MB printed\n",
                static_cast<unsigned long long>(streams), state, time,
                static_cast<double>(counted.bytes) / 1e6);
  }
}

// Reads and checksums all files once. Returns their bytes.
std::uint64_t checksum(const Directory& directory) {
  std::uint64_t bytes = 0;
  for (const FileNumber number : directory.list()) {
    const auto file = expect(directory.open_to_read(number));
    const MappedFile map(file.get(), file_size(file.get()));
    bytes += map.bytes().size();
    volatile std::uint32_t sum = crc32(map.bytes());
    static_cast<void>(sum);
  }
  return bytes;
}

void measure_verify(std::uint64_t streams, std::uint32_t slices, std::size_t rounds) {
  TemporaryDirectory path;
  Generator generator(path.path());
  generator.long_streams(streams, slices, 3200);
  std::vector<double> ours, bare;
  double bytes = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    bare.push_back(
        seconds_of([&] { bytes = static_cast<double>(checksum(generator.directory())); }));
    ours.push_back(seconds_of([&] {
      Counted counted;
      std::ostream out(&counted);
      recordings::Progress progress(std::cerr, false);
      const auto good = recordings::verify(path.path(), false, out, progress);
      if (!good || !*good) throw std::runtime_error("verify found a problem");
    }));
  }
  std::ranges::sort(ours);
  std::ranges::sort(bare);
  std::printf("verify of %.2f GB: %.2f GB/s; one checksum of the same bytes: %.2f GB/s\n",
              bytes / 1e9, bytes / 1e9 / ours[rounds / 2], bytes / 1e9 / bare[rounds / 2]);
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t streams = 1'000'000, at_once = 1000;
  std::uint32_t slices = 300;
  int rounds = 5;
  bench::Options options("Measure millrace recordings ls and verify");
  options.add("--streams", streams, "Streams that ls lists")
      .add("--at-once", at_once, "Streams at a time in the files for verify")
      .add("--slices", slices, "Slices of each of these streams, of 200 ms; 3 to 100000")
      .add("--rounds", rounds, "Runs of verify; at least 1")
      .parse(argc, argv);
  options.require(slices >= 3 && slices <= 100'000, "--slices: 3 to 100000");
  options.require(rounds > 0, "--rounds: at least 1");
  measure_verify(at_once, slices, static_cast<std::size_t>(rounds));
  measure_ls(streams);
}
