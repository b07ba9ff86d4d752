// SPDX-License-Identifier: Apache-2.0
#include "service/commands/input/audio_file.h"

#include <sndfile.h>

#include <string_view>
#include <utility>

#include "input/value_kernels.h"

namespace millrace {
namespace {

std::string reason_of_failed_open() {
  constexpr std::string_view system = "System error : ";
  std::string reason = sf_strerror(nullptr);
  if (reason.starts_with(system)) reason.erase(0, system.size());
  while (reason.ends_with('.') || reason.ends_with('\n')) reason.pop_back();
  return reason;
}

}  // namespace

void AudioFile::Close::operator()(sf_private_tag* file) const { sf_close(file); }

AudioFile::AudioFile(std::string path, File file, double rate, std::uint32_t channels)
    : path_(std::move(path)), file_(std::move(file)), rate_(rate), channels_(channels) {}

Result<AudioFile, std::string> AudioFile::open(const std::string& path) {
  SF_INFO format{};
  File file(sf_open(path.c_str(), SFM_READ, &format));
  if (!file) return "cannot be read as audio: " + reason_of_failed_open();
  return AudioFile(path, std::move(file), format.samplerate,
                   static_cast<std::uint32_t>(format.channels));
}

// Reads floats, which represent every 16-bit sample exactly. If asked for integers, libsndfile
// would wrap samples that are too loud, or scale the whole file by its loudest sample.
Result<std::span<const std::int16_t>, std::string> AudioFile::read(std::size_t most) {
  floats_.resize(most * channels_);
  const auto got = sf_readf_float(file_.get(), floats_.data(), static_cast<sf_count_t>(most));
  if (got < static_cast<sf_count_t>(most) && sf_error(file_.get()) != SF_ERR_NO_ERROR)
    return std::string("is damaged: ") + sf_strerror(file_.get());
  const auto values = static_cast<std::size_t>(got) * channels_;
  frames_.resize(values);
  const Bytes floats = std::as_bytes(std::span(floats_).first(values));
  if (!all_finite(SampleFormat::f32le, floats))
    return std::string("has values that are not finite");
  value_kernel(SampleFormat::f32le, Element::s16)(
      floats.data(), std::as_writable_bytes(std::span(frames_)).data(), values);
  return std::span<const std::int16_t>(frames_);
}

}  // namespace millrace
