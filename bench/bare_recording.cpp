// SPDX-License-Identifier: Apache-2.0
#include "bench/bare_recording.h"

#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <stdexcept>

#include "recording/files/file.h"
#include "recording/format/checksums.h"

namespace millrace::bench {

using namespace recording;

Folder::Folder(const std::string& folder) : path_(folder + "/recording-XXXXXX") {
  if (!::mkdtemp(path_.data())) throw std::runtime_error("cannot make " + path_);
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

FileDescriptor Folder::create() const {
  const auto directory = Directory::open(path_, Directory::For::writing);
  if (!directory) throw std::runtime_error(directory.error());
  if (std::ranges::count(directory->list(), 1U) > 0) static_cast<void>(directory->remove(1));
  auto file = directory->create(1);
  if (!file) throw std::system_error(file.error(), path_);
  return std::move(*file);
}

void check(const Result<void, std::error_code>& result) {
  if (!result) throw std::system_error(result.error(), "write");
}

std::vector<std::byte> frames_of(std::size_t part) {
  std::vector<std::byte> frames(64 << 20);
  std::uint64_t state = 1;
  for (std::byte& byte : frames) {
    state = state * 6364136223846793005 + 1442695040888963407;
    byte = static_cast<std::byte>(state >> 56);
  }
  frames.resize(frames.size() / part * part);
  return frames;
}

void copy_and_write(FileDescriptor file, std::uint64_t parts, std::size_t bytes, bool sync,
                    const std::vector<std::byte>& frames) {
  std::vector<std::byte> buffer;
  buffer.reserve(commit_bytes + bytes);
  std::uint32_t crc = 0;
  const auto commit = [&] {
    crc = crc32(buffer, crc);
    check(write_all(file.get(), buffer));
    if (sync) check(sync_data(file.get()));
    buffer.clear();
  };
  for (std::uint64_t number = 0; number < parts; ++number) {
    const Bytes part = part_of(frames, number, bytes);
    buffer.insert(buffer.end(), part.begin(), part.end());
    if (buffer.size() >= commit_bytes) commit();
  }
  commit();
  // So that the compiler computes it.
  if (crc == 1) std::printf("\n");
}

}  // namespace millrace::bench
