// SPDX-License-Identifier: Apache-2.0
#include "commands/input/wav_header.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "input/containers/container_name.h"
#include "input/containers/header_reader.h"

namespace millrace {
namespace {

struct SentFormat {
  std::uint32_t kind, bits;
  SampleFormat format;
};
constexpr std::array<SentFormat, 5> sent_formats{{{1, 16, SampleFormat::s16le},
                                                  {1, 24, SampleFormat::s24le},
                                                  {3, 32, SampleFormat::f32le},
                                                  {6, 8, SampleFormat::alaw},
                                                  {7, 8, SampleFormat::mulaw}}};

constexpr std::string_view convert = "; convert it: ffmpeg -i INPUT -c:a pcm_s16le -f wav -";

// nullopt if the client protocol does not support the format.
std::optional<AudioFormat> format_of(const WavFormat& found) {
  AudioFormat format{.rate = static_cast<double>(found.rate), .channels = found.channels};
  const auto* sent = std::ranges::find_if(sent_formats, [&found](const SentFormat& one) {
    return one.kind == found.kind && one.bits == found.bits;
  });
  if (sent == sent_formats.end() || found.rate == 0 || found.channels == 0) return std::nullopt;
  format.format = sent->format;
  return format;
}

std::string refusal(const WavFormat& found) {
  return "has WAV format " + std::to_string(found.kind) + " with " + std::to_string(found.bits) +
         " bits at " + std::to_string(found.rate) + " Hz, " + std::to_string(found.channels) +
         " channels; supported: PCM of 16 or 24 bits, 32-bit float, G.711" + std::string(convert);
}

// Raw audio has no signature: only then is it an answer to give its format.
std::string not_wav(const HeaderReader& header) {
  const std::string_view container = container_name(header.beginning());
  if (container == "WAV" || container == "W64") return "ends within its WAV header";
  if (container.empty())
    return "is not WAV; for raw audio give --format s16le --rate 16000 --channels 1" +
           std::string(convert);
  return "is " + std::string(container) +
         ", and standard input must be WAV: give the name of the file" + std::string(convert);
}

}  // namespace

Result<WavHeader, std::string> read_wav_header(int descriptor) {
  HeaderReader header(descriptor);
  const auto found = read_sample_bytes(header);
  if (header.at() == 0) return std::string("is empty");
  if (found && found->format) {
    const auto format = format_of(*found->format);
    if (!format) return refusal(*found->format);
    return WavHeader{.format = *format, .samples = *found};
  }
  if (found && !found->field.big_endian) return std::string("has no format before its samples");
  if (header.at() < longest_signature) header.skip(longest_signature - header.at());
  return not_wav(header);
}

}  // namespace millrace
