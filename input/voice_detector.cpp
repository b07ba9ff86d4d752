// SPDX-License-Identifier: Apache-2.0
#include "input/voice_detector.h"

#include <webrtc/modules/audio_processing/include/audio_processing.h>
#include <webrtc/modules/interface/module_common_types.h>

#include <algorithm>
#include <cassert>
#include <new>
#include <span>
#include <utility>

#include "input/mono_samples.h"

namespace millrace {
namespace {

using Processing = webrtc::AudioProcessing;

struct RateMemory {
  int rate;
  std::size_t bytes;  // measured, and rounded up
};
constexpr RateMemory rates[] = {{Processing::kSampleRate8kHz, 12 << 10},
                                {Processing::kSampleRate16kHz, 12 << 10},
                                {Processing::kSampleRate32kHz, 16 << 10},
                                {Processing::kSampleRate48kHz, 24 << 10}};

const RateMemory* find(double rate) {
  const auto* found = std::ranges::find(
      rates, rate, [](const RateMemory& each) { return static_cast<double>(each.rate); });
  return found == std::end(rates) ? nullptr : found;
}

// The library is called with valid arguments only: it can fail only for lack of memory.
void check(int error) {
  if (error != Processing::kNoError) throw std::bad_alloc();
}

std::unique_ptr<Processing> open(int rate, std::uint32_t sensitivity) {
  // Without this and the channels of the far end, the library takes five times the memory.
  webrtc::Config config;
  config.Set<webrtc::ExperimentalAgc>(new webrtc::ExperimentalAgc(false));
  std::unique_ptr<Processing> processing(Processing::Create(config));
  if (!processing) throw std::bad_alloc();
  webrtc::ProcessingConfig streams;
  streams.input_stream() = streams.output_stream() = webrtc::StreamConfig(rate, 1);
  streams.reverse_input_stream() = streams.reverse_output_stream() = webrtc::StreamConfig(rate, 0);
  check(processing->Initialize(streams));
  webrtc::VoiceDetection& detection = *processing->voice_detection();
  // A likelihood of speech: the higher, the more sounds are speech.
  check(detection.set_likelihood(static_cast<webrtc::VoiceDetection::Likelihood>(sensitivity)));
  check(detection.set_frame_size_ms(Processing::kChunkSizeMs));
  check(detection.Enable(true));
  return processing;
}

}  // namespace

class VoiceDetector::Library {
 public:
  Library(const FrameType& type, std::uint32_t sensitivity)
      : type_(type), processing_(open(static_cast<int>(type.rate), sensitivity)) {
    piece_.sample_rate_hz_ = static_cast<int>(type.rate);
    piece_.num_channels_ = 1;
    piece_.samples_per_channel_ = static_cast<std::size_t>(type.rate) / 100;
  }

  std::size_t piece() const { return piece_.samples_per_channel_; }
  std::size_t missing() const { return piece() - filled_; }

  std::optional<bool> add(Bytes frames) {
    const std::size_t count = frames.size() / type_.bytes();
    assert(count <= missing() && frames.size() % type_.bytes() == 0);
    to_mono_samples(frames, type_, std::span(piece_.data_ + filled_, count));
    filled_ += count;
    if (missing() > 0) return std::nullopt;
    filled_ = 0;
    used_ = true;
    [[maybe_unused]] const int error = processing_->ProcessStream(&piece_);
    assert(error == Processing::kNoError);
    return processing_->voice_detection()->stream_has_voice();
  }

  void restart() {
    filled_ = 0;
    if (!std::exchange(used_, false)) return;
    // Above 16 kHz there is a filter too. Up to 16 kHz the detector is the only state, and enabling
    // it begins anew without allocating.
    if (piece_.sample_rate_hz_ > Processing::kSampleRate16kHz)
      return check(processing_->Initialize());
    check(processing_->voice_detection()->Enable(false));
    check(processing_->voice_detection()->Enable(true));
  }

 private:
  const FrameType type_;
  const std::unique_ptr<Processing> processing_;
  webrtc::AudioFrame piece_;
  std::size_t filled_ = 0;  // frames of the current piece
  bool used_ = false;       // has had a piece since the start or restart
};

bool VoiceDetector::has_rate(double rate) { return find(rate) != nullptr; }

std::size_t VoiceDetector::bytes(double rate) {
  assert(has_rate(rate));
  return find(rate)->bytes;
}

VoiceDetector::VoiceDetector(const FrameType& frames, std::uint32_t sensitivity)
    : library_(std::make_unique<Library>(frames, sensitivity)) {
  assert(has_rate(frames.rate) && !frames.features && sensitivity <= 3);
}

VoiceDetector::~VoiceDetector() = default;

std::unique_ptr<VoiceDetector> VoiceDetector::of(const std::optional<EndpointRule>& rule,
                                                 const FrameType& frames) {
  if (!rule || rule->by != EndpointRule::By::vad) return nullptr;
  return std::make_unique<VoiceDetector>(frames, rule->sensitivity);
}

std::size_t VoiceDetector::missing() const { return library_->missing(); }
std::size_t VoiceDetector::piece() const { return library_->piece(); }
std::optional<bool> VoiceDetector::add(Bytes frames) { return library_->add(frames); }
void VoiceDetector::restart() { library_->restart(); }

}  // namespace millrace
