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

constexpr std::uint16_t pcm = 1, ieee_float = 3, extensible = 0xfffe;
constexpr std::string_view convert =
    "; convert it: ffmpeg -i INPUT -ar RATE -ac CHANNELS -f wav - | millrace stream -";

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
std::optional<PcmFormat> format_of(const FormatChunk& found) {
  PcmFormat format{.rate = static_cast<double>(found.rate), .channels = found.channels};
  if (found.kind == ieee_float && found.bits == 32) format.name = "f32le";
  const bool supported = (found.kind == pcm && found.bits == 16) || format.name == "f32le";
  if (!supported || found.rate == 0 || found.channels == 0) return std::nullopt;
  return format;
}

std::string refusal(const FormatChunk& found) {
  return "has WAV format " + std::to_string(found.kind) + " with " + std::to_string(found.bits) +
         " bits at " + std::to_string(found.rate) + " Hz, " + std::to_string(found.channels) +
         " channels; supported: 16-bit PCM and 32-bit float" + std::string(convert);
}

std::string not_wav() {
  return "is not WAV; for raw PCM give --format s16le --rate 16000 --channels 1" +
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
