// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/index/wav_samples.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "base/file_descriptor.h"

namespace millrace::training {
namespace {

constexpr std::uint16_t pcm = 1, extensible = 0xfffe;
// Programs that write to a pipe do not know the final size, and write a large number or 0.
constexpr std::uint32_t unknown_size = 0x7fff'0000;
constexpr int most_chunks = 64;

class Header {
 public:
  explicit Header(int file) : file_(file) {}

  bool read(std::uint64_t at, std::size_t bytes) {
    return ::pread(file_, buffer_.data(), bytes, static_cast<off_t>(at)) ==
           static_cast<ssize_t>(bytes);
  }
  std::string_view name(std::size_t at) const { return {buffer_.data() + at, 4}; }
  std::uint32_t number(std::size_t at, std::size_t bytes) const {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i)
      value |= std::uint32_t{static_cast<std::uint8_t>(buffer_[at + i])} << (8 * i);
    return value;
  }

 private:
  const int file_;
  std::array<char, 40> buffer_{};
};

// The format chunk that was read. False: it is not 16-bit PCM.
bool read_format(const Header& header, std::uint32_t size, WavSamples& into) {
  std::uint32_t kind = header.number(0, 2);
  if (kind == extensible && size >= 40) kind = header.number(24, 2);
  into.channels = header.number(2, 2);
  into.rate = header.number(4, 4);
  const std::uint32_t block = header.number(12, 2);
  return kind == pcm && header.number(14, 2) == 16 && into.channels > 0 &&
         block == 2 * into.channels;
}

}  // namespace

std::optional<WavSamples> find_wav_samples(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  Header header(file.get());
  if (!file || !header.read(0, 12) || header.name(0) != "RIFF" || header.name(8) != "WAVE")
    return std::nullopt;
  WavSamples found;
  std::uint64_t at = 12;
  for (int chunk = 0; chunk < most_chunks && header.read(at, 8); ++chunk) {
    const std::uint32_t size = header.number(4, 4);
    if (header.name(0) == "fmt ") {
      if (size < 16 || !header.read(at + 8, size >= 40 ? 40 : 16) ||
          !read_format(header, size, found))
        return std::nullopt;
    } else if (header.name(0) == "data") {
      found.begin = at + 8;
      if (found.channels == 0 || found.begin % 2 != 0 || size == 0 || size >= unknown_size)
        return std::nullopt;
      found.frames = size / (2 * found.channels);
      return found;
    }
    at += std::uint64_t{8} + size + size % 2;
  }
  return std::nullopt;
}

}  // namespace millrace::training
