// SPDX-License-Identifier: Apache-2.0
// Writes a directory of recordings, and times `millrace recordings ls` with a warm page cache.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "bench/options.h"
#include "bench/slice_load.h"
#include "recording/files/file_writer.h"
#include "tests/support/temporary_directory.h"

namespace millrace::bench {
namespace {

using namespace recording;

constexpr std::uint64_t file_bytes = 256 << 20, commit_bytes = 4 << 20;

// `streams` streams of `slices` slices with `frames` frames each, `at_once` of them in turn.
struct Contents {
  std::uint64_t streams = 1'000'000, at_once = 1;
  std::uint32_t slices = 1, frames = 8;
};

template <class T, class E>
T expect(Result<T, E> result) {
  if (!result) throw std::runtime_error("a recording cannot be written");
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

// Writes the sealed recording files of a new directory.
class Recording {
 public:
  Recording(const std::string& path, const Contents& contents)
      : directory_(expect(Directory::open(path, Directory::For::writing))),
        contents_(contents),
        values_(contents.frames, std::int16_t{77}) {}

  void write() {
    for (std::uint64_t first = 1; first <= contents_.streams; first += contents_.at_once)
      for (std::uint32_t slice = 0; slice < contents_.slices; ++slice)
        for (std::uint64_t i = 0; i < contents_.at_once; ++i) add(meta_of(first + i), slice);
    expect(writer_->seal());
  }

 private:
  void add(const StreamMeta& meta, std::uint32_t number) {
    make_room(meta.number);
    const auto at = [&](std::uint32_t slice) { return from_wire(1'000'000 * (slice + 1)); };
    const bool last = number + 1 == contents_.slices;
    events_.clear();
    if (number == 0) events_.push_back({{.kind = Event::Kind::open}, at(0)});
    events_.push_back({{.kind = Event::Kind::frames, .count = contents_.frames}, at(number)});
    if (last) events_.push_back({{.kind = Event::Kind::end}, at(number)});
    const std::uint64_t begin = std::uint64_t{number} * contents_.frames;
    Slice slice{.stream = meta.number,
                .first_event = number == 0 ? 0 : std::uint64_t{number} + 1,
                .begin = begin,
                .events = events_};
    if (last) slice.closing = StreamTotals{.frames = begin + contents_.frames, .complete = true};
    const Bytes frames = std::as_bytes(std::span(values_));
    writer_->add(meta, number, meta.opened_wall, slice, {&frames, 1});
    if (writer_->uncommitted() > commit_bytes) expect(writer_->write());
  }

  void make_room(std::uint64_t stream) {
    if (writer_ && writer_->size() < file_bytes &&
        (writer_->has_channel(stream) || writer_->channels() < FileWriter::most_channels))
      return;
    if (writer_) expect(writer_->seal());
    const FileHead head{.file = ++file_,
                        .run = std::string(32, 'a'),
                        .id = std::string(32, 'b'),
                        .first_stream = stream};
    writer_.emplace(expect(FileWriter::begin(expect(directory_.create(file_)), head)));
  }

  const Directory directory_;
  const Contents contents_;
  const std::vector<std::int16_t> values_;
  std::optional<FileWriter> writer_;
  FileNumber file_ = 0;
  std::vector<RecordedEvent> events_;
};

void list(const std::string& program, const std::string& path) {
  const std::string command = program + " recordings ls '" + path + "' >/dev/null";
  const Time begin = Clock::now();
  if (std::system(command.c_str()) != 0) throw std::runtime_error(command + " fails");
  const std::chrono::duration<double> took = Clock::now() - begin;
  std::printf("ls: %.2f s\n", took.count());
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  using namespace millrace::bench;
  Contents contents;
  std::string folder, program = "build/release/service/millrace";
  int rounds = 3;
  Options options("Measure millrace recordings ls");
  options.add("--streams", contents.streams, "Streams, a multiple of --at-once")
      .add("--at-once", contents.at_once, "Streams at a time")
      .add("--slices", contents.slices, "Slices of each stream")
      .add("--frames", contents.frames, "Frames of a slice")
      .add("--rounds", rounds, "Calls of ls")
      .add("--millrace", program, "The program")
      .add("--folder", folder, "A new directory, which is kept; default: a temporary one")
      .parse(argc, argv);
  options.require(contents.slices > 0 && contents.at_once > 0, "--slices, --at-once: at least 1");
  options.require(contents.streams % contents.at_once == 0, "--streams: a multiple of --at-once");
  try {
    const millrace::TemporaryDirectory temporary;
    if (folder.empty()) folder = temporary / "recordings";
    Recording(folder, contents).write();
    for (int round = 0; round < rounds; ++round) list(program, folder);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "recordings_bench: %s\n", error.what());
    return 1;
  }
}
