// SPDX-License-Identifier: Apache-2.0
// Measures recovery and reading of a recording file of 256 MiB that was left unsealed, with a torn
// tail: 2000 streams with slices of 3200 bytes. The page cache is warm. Prints the median of each.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "bench/options.h"
#include "recording/files/file.h"
#include "recording/files/file_writer.h"
#include "recording/files/recording_file.h"
#include "recording/files/recovery.h"
#include "tests/recording/recording_files.h"
#include "tests/support/temporary_directory.h"

using namespace millrace;
using namespace millrace::recording;

namespace {

constexpr std::uint64_t file_bytes = 256 << 20, commit_bytes = 4 << 20;
constexpr std::size_t frames = 1600;

void write(const Directory& directory, std::uint64_t count) {
  auto writer = expect(FileWriter::begin(expect(directory.create(1)), head_of(1)));
  std::vector<TestStream> streams;
  for (std::uint64_t stream = 1; stream <= count; ++stream) streams.emplace_back(stream);
  while (writer.size() < file_bytes)
    for (TestStream& stream : streams) {
      stream.add(writer, frames);
      if (writer.uncommitted() >= commit_bytes) expect(writer.write());
    }
  expect(writer.write());
  expect(writer.sync());
}

double seconds(const std::function<void()>& task) {
  const auto begin = std::chrono::steady_clock::now();
  task();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void require(bool good) {
  if (!good) throw std::runtime_error("the file is not good");
}

// A pass over an unsealed file: it is scanned, recovered, opened, and verified.
void pass(std::uint64_t streams, const std::string& parent, std::vector<double> (&times)[4],
          double& gigabytes) {
  const TemporaryDirectory temporary(parent);
  const Directory directory = expect(Directory::open(temporary.path(), Directory::For::writing));
  write(directory, streams);
  const FileDescriptor file = expect(directory.open_to_repair(1));
  gigabytes = static_cast<double>(file_size(file.get())) / 1e9;
  expect(truncate(file.get(), file_size(file.get()) - 1000));
  times[0].push_back(seconds([&] { expect(RecordingFile::open(directory, 1)); }));
  times[1].push_back(seconds([&] { require(expect(recover(directory, 1)).cut_bytes > 0); }));
  times[2].push_back(seconds([&] { require(expect(RecordingFile::open(directory, 1)).sealed()); }));
  RecordingFile sealed = expect(RecordingFile::open(directory, 1));
  times[3].push_back(seconds([&] {
    for (std::size_t chunk = 0; chunk < sealed.chunks().size(); ++chunk)
      require(sealed.messages(chunk).has_value());
  }));
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t streams = 2000;
  int passes = 5;
  std::string parent = "/tmp";
  bench::Options("Measures recovery and reading of a recording file.")
      .add("--streams", streams, "Streams in the file")
      .add("--passes", passes, "Files to write and recover")
      .add("--directory", parent, "Where the files are written")
      .parse(argc, argv);
  std::vector<double> times[4];
  double gigabytes = 0;
  for (int i = 0; i < passes; ++i) pass(streams, parent, times, gigabytes);
  std::printf("file: %.0f MB, %llu streams\n", gigabytes * 1000,
              static_cast<unsigned long long>(streams));
  std::printf("open unsealed  %7.1f ms\n", 1000 * median(times[0]));
  std::printf("recover        %7.1f ms\n", 1000 * median(times[1]));
  std::printf("open sealed    %7.1f ms\n", 1000 * median(times[2]));
  std::printf("all checksums  %7.1f ms  %.2f GB/s\n", 1000 * median(times[3]),
              gigabytes / median(times[3]));
}
