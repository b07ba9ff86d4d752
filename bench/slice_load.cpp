// SPDX-License-Identifier: Apache-2.0
#include "bench/slice_load.h"

#include <stdlib.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "recording/files/directory.h"
#include "recording/files/file.h"
#include "recording/format/checksums.h"

namespace millrace::bench {
namespace {

using namespace recording;

void check(const Result<void, std::error_code>& result) {
  if (!result) throw std::system_error(result.error(), "write");
}

double seconds(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

BenchFolder::BenchFolder(const std::string& folder) : path_(folder + "/recording-XXXXXX") {
  if (!::mkdtemp(path_.data())) throw std::runtime_error("cannot make " + path_);
}

BenchFolder::~BenchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

FileDescriptor BenchFolder::create() const {
  const auto directory = Directory::open(path_, Directory::For::writing);
  if (!directory) throw std::runtime_error(directory.error());
  if (std::ranges::count(directory->list(), 1U) > 0) static_cast<void>(directory->remove(1));
  auto file = directory->create(1);
  if (!file) throw std::system_error(file.error(), path_);
  return std::move(*file);
}

std::vector<std::byte> frames_of(const SliceLoad& load) {
  std::vector<std::byte> frames(64 << 20);
  std::uint64_t state = 1;
  for (std::byte& byte : frames) {
    state = state * 6364136223846793005 + 1442695040888963407;
    byte = static_cast<std::byte>(state >> 56);
  }
  frames.resize(frames.size() / load.slice * load.slice);
  return frames;
}

StreamMeta meta_of(std::uint64_t number) {
  return {.number = number,
          .name = "load-" + std::to_string(number),
          .pipeline = "asr",
          .rule = R"({"size":1600,"step":1600,"first":1600,"left":0,"right":0})",
          .client = R"({"format":"s16le","rate":16000,"channels":1})",
          .opened_wall = 1'760'000'000'000'000'000};
}

void write_bare(FileDescriptor file, const SliceLoad& load, const std::vector<std::byte>& frames) {
  std::vector<std::byte> buffer;
  buffer.reserve(commit_bytes + load.slice);
  std::uint32_t crc = 0;
  const auto commit = [&] {
    crc = crc32(buffer, crc);
    check(write_all(file.get(), buffer));
    if (load.sync) check(sync_data(file.get()));
    buffer.clear();
  };
  for (std::uint64_t slice = 0; slice < load.slices(); ++slice) {
    const Bytes part = frames_of(frames, slice, load.slice);
    buffer.insert(buffer.end(), part.begin(), part.end());
    if (buffer.size() >= commit_bytes) commit();
  }
  commit();
  // So that the compiler computes it.
  if (crc == 1) std::printf("\n");
}

double process_cpu() { return seconds(CLOCK_PROCESS_CPUTIME_ID); }
double thread_cpu() { return seconds(CLOCK_THREAD_CPUTIME_ID); }

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace millrace::bench
