// SPDX-License-Identifier: Apache-2.0
#include "bench/slice_load.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "base/file_descriptor.h"
#include "recording/files/file.h"
#include "recording/format/checksums.h"
#include "tests/support/temporary_directory.h"

namespace millrace::bench {
namespace {

constexpr std::size_t commit_bytes = 4 << 20;

void check(const Result<void, std::error_code>& result) {
  if (!result) throw std::system_error(result.error(), "write");
}

}  // namespace

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

recording::StreamMeta meta_of(std::uint64_t number) {
  return {.number = number,
          .name = "load-" + std::to_string(number),
          .pipeline = "asr",
          .rule = R"({"size":1600,"step":1600,"first":1600,"left":0,"right":0})",
          .client = R"({"format":"s16le","rate":16000,"channels":1})",
          .opened_wall = 1'760'000'000'000'000'000};
}

void write_bare(const SliceLoad& load, const std::vector<std::byte>& frames) {
  const TemporaryDirectory folder(load.folder);
  const FileDescriptor file(
      ::open((folder / "bare").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  if (!file) throw std::system_error(errno, std::generic_category(), "open");
  std::vector<std::byte> buffer;
  buffer.reserve(commit_bytes + load.slice);
  std::uint32_t crc = 0;
  const auto commit = [&] {
    crc = recording::crc32(buffer, crc);
    check(recording::write_all(file.get(), buffer));
    check(recording::sync_data(file.get()));
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

}  // namespace millrace::bench
