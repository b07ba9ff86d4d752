// SPDX-License-Identifier: Apache-2.0
#include "input/files/converted_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "input/client_format.h"

namespace millrace {
namespace {

constexpr std::size_t values_at_once = 16384;
constexpr double most_pipeline_rate = 1e6;

ClientFormat client_of(const AudioFile& file, SampleFormat sent, const FrameType& frames) {
  ClientFormat from{.format = sent, .values = file.channels(), .rate = file.rate()};
  if (from.values != frames.values) from.channel = MeanOfChannels{};
  return from;
}

std::string channels_text(std::uint32_t channels) {
  return std::to_string(channels) + (channels == 1 ? " channel" : " channels");
}

}  // namespace

std::string ConvertedFile::fault(double rate, std::uint32_t channels, const FrameType& frames) {
  if (frames.features) return "is audio; the pipeline takes features";
  if (channels != frames.values && (frames.values != 1 || channels > most_client_channels))
    return "has " + channels_text(channels) + "; the pipeline takes " +
           std::to_string(frames.values);
  const bool whole_rate =
      frames.rate == std::floor(frames.rate) && frames.rate <= most_pipeline_rate;
  if (rate != frames.rate && !(is_convertible_rate(rate) && whole_rate))
    return "has " + std::to_string(std::lround(rate)) + " Hz; whole rates from 8000 to 192000 Hz " +
           "are converted, to whole rates";
  return {};
}

MutableBytes ConvertedFile::Block::writable(std::size_t frames) {
  const std::size_t needed = end_ + frames * frame_bytes_;
  if (memory_.size() < needed) memory_.resize(needed);
  return MutableBytes(memory_).subspan(end_, frames * frame_bytes_);
}

void ConvertedFile::Block::drop(std::size_t bytes) {
  begin_ += bytes;
  if (begin_ == end_) begin_ = end_ = 0;
}

ConvertedFile::ConvertedFile(AudioFile file, const FrameType& frames, SampleFormat sent,
                             std::uint64_t most)
    : file_(std::move(file)),
      sent_(sent == SampleFormat::s16le ? Element::s16 : Element::f32),
      frame_bytes_(frames.bytes()),
      left_(most),
      converter_(std::make_unique<InputConverter>(client_of(file_, sent, frames), frames)),
      values_(std::max<std::size_t>(1, values_at_once / file_.channels()) * file_.channels() *
              size_of(sent_)),
      block_(frames.bytes()) {}

// A block of the file may give no frame, if the resampler holds its frames back.
Result<Bytes, std::string> ConvertedFile::rest() {
  const std::size_t frame = file_.channels() * size_of(sent_);
  while (block_.rest().empty() && !drained_) {
    const std::uint64_t wanted = std::min<std::uint64_t>(left_, values_.size() / frame);
    const auto got = file_.read(sent_, MutableBytes(values_).first(wanted * frame));
    if (!got) return got.error();
    left_ -= *got;
    const auto converted = converter_->convert(Bytes(values_).first(*got * frame), block_);
    if (converted.fault != InputConverter::Fault::none) return std::string(AudioFile::not_finite);
    if (*got < wanted || left_ == 0) {
      converter_->drain(0, block_);
      drained_ = true;
    }
  }
  return block_.rest();
}

Result<std::size_t, std::string> ConvertedFile::read(MutableBytes into) {
  const std::size_t frames = into.size() / frame_bytes_;
  std::size_t done = 0;
  while (done < frames) {
    const auto from = rest();
    if (!from) return from.error();
    if (from->empty()) break;
    const std::size_t bytes = std::min(from->size(), (frames - done) * frame_bytes_);
    std::memcpy(into.data() + done * frame_bytes_, from->data(), bytes);
    block_.drop(bytes);
    done += bytes / frame_bytes_;
  }
  return done;
}

Result<std::uint64_t, std::string> ConvertedFile::skip(std::uint64_t frames) {
  std::uint64_t done = 0;
  while (done < frames) {
    const auto from = rest();
    if (!from) return from.error();
    if (from->empty()) break;
    const std::uint64_t count = std::min<std::uint64_t>(from->size() / frame_bytes_, frames - done);
    block_.drop(count * frame_bytes_);
    done += count;
  }
  return done;
}

}  // namespace millrace
