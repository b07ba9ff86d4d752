// SPDX-License-Identifier: Apache-2.0
#include "service/commands/input/wav_header.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

namespace millrace {
namespace {

constexpr std::uint32_t extensible = 0xfffe;

struct WavFormat {
  std::uint32_t kind, bits;
  SampleFormat format;
};
constexpr std::array<WavFormat, 5> wav_formats{{{1, 16, SampleFormat::s16le},
                                                {1, 24, SampleFormat::s24le},
                                                {3, 32, SampleFormat::f32le},
                                                {6, 8, SampleFormat::alaw},
                                                {7, 8, SampleFormat::mulaw}}};

constexpr std::string_view convert = "; convert it: ffmpeg -i INPUT -c:a pcm_s16le -f wav -";

// Programs that write to a pipe do not know the final size, and write a large number or 0.
constexpr std::uint32_t unknown_size = 0x7fff'0000;

class Header {
 public:
  explicit Header(int descriptor) : descriptor_(descriptor) {}

  // The next little-endian number of `bytes` bytes; bytes after the end count as 0.
  std::uint32_t number(std::size_t bytes) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) value |= std::uint32_t{byte()} << (8 * i);
    return value;
  }
  std::string name() {
    std::string four(4, '\0');
    std::ranges::generate(four, [this] { return static_cast<char>(byte()); });
    return four;
  }
  void skip(std::uint64_t bytes) {
    while (bytes > 0 && !ended_) bytes -= fill(std::min<std::uint64_t>(bytes, buffer_.size()));
  }
  bool ended() const { return ended_; }

 private:
  std::uint8_t byte() {
    buffer_[0] = 0;
    (void)fill(1);
    return ended_ ? 0 : buffer_[0];
  }
  std::size_t fill(std::size_t bytes) {
    ssize_t got = 0;
    do got = ::read(descriptor_, buffer_.data(), bytes);
    while (got < 0 && errno == EINTR);
    ended_ = got <= 0;
    return static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  }

  const int descriptor_;
  bool ended_ = false;
  std::array<std::uint8_t, 4096> buffer_{};
};

struct FormatChunk {
  std::uint32_t kind = 0, channels = 0, rate = 0, bits = 0;
};

FormatChunk read_format_chunk(Header& header, std::uint32_t size) {
  FormatChunk found;
  found.kind = header.number(2);
  found.channels = header.number(2);
  found.rate = header.number(4);
  header.skip(6);
  found.bits = header.number(2);
  std::uint32_t rest = std::max(size, 16u) - 16;
  if (found.kind == extensible && rest >= 10) {
    header.skip(8);
    found.kind = header.number(2);
    rest -= 10;
  }
  header.skip(rest);
  return found;
}

// nullopt if the client protocol does not support the format.
std::optional<AudioFormat> format_of(const FormatChunk& found) {
  AudioFormat format{.rate = static_cast<double>(found.rate), .channels = found.channels};
  const auto* wav = std::ranges::find_if(wav_formats, [&found](const WavFormat& one) {
    return one.kind == found.kind && one.bits == found.bits;
  });
  if (wav == wav_formats.end() || found.rate == 0 || found.channels == 0) return std::nullopt;
  format.format = wav->format;
  return format;
}

std::string refusal(const FormatChunk& found) {
  return "has WAV format " + std::to_string(found.kind) + " with " + std::to_string(found.bits) +
         " bits at " + std::to_string(found.rate) + " Hz, " + std::to_string(found.channels) +
         " channels; supported: PCM of 16 or 24 bits, 32-bit float, G.711" + std::string(convert);
}

std::string not_wav() {
  return "is not WAV; for raw audio give --format s16le --rate 16000 --channels 1" +
         std::string(convert);
}

}  // namespace

Result<WavHeader, std::string> read_wav_header(int descriptor) {
  Header header(descriptor);
  const bool riff = header.name() == "RIFF";
  if (header.ended()) return std::string("is empty");
  if (!riff) return not_wav();
  header.skip(4);
  if (header.name() != "WAVE") return not_wav();
  for (std::optional<FormatChunk> found; !header.ended();) {
    const std::string chunk = header.name();
    const std::uint32_t size = header.number(4);
    if (chunk == "fmt ") {
      found = read_format_chunk(header, size);
    } else if (chunk == "data" && found) {
      const auto format = format_of(*found);
      if (!format) return refusal(*found);
      const bool known = size > 0 && size < unknown_size;
      return WavHeader{*format, known ? size : std::numeric_limits<std::uint64_t>::max()};
    } else {
      header.skip(std::uint64_t{size} + size % 2);
    }
  }
  return std::string("ends within its WAV header");
}

}  // namespace millrace
