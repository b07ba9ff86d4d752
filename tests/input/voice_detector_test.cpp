// SPDX-License-Identifier: Apache-2.0
#include "input/voice_detector.h"

#include <malloc.h>
#include <webrtc/modules/audio_processing/include/audio_processing.h>
#include <webrtc/modules/interface/module_common_types.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "tests/support/allocations.h"
#include "tests/support/bytes.h"
#include "tests/support/speech_like.h"

using namespace millrace;

namespace {

using Audio = std::vector<std::int16_t>;
using Decisions = std::vector<bool>;

FrameType mono_type(double rate) { return {.rate = rate}; }

// Bursts of noise of every loudness, with pauses.
Audio bursts(int rate, unsigned seed) {
  std::mt19937 random(seed);
  Audio audio;
  for (int burst = 0; burst < 12; ++burst) {
    const int loudness = 1 << (random() % 15);
    for (auto frames = rate / 50 + static_cast<int>(random()) % (rate / 5); frames > 0; --frames)
      audio.push_back(
          static_cast<std::int16_t>(static_cast<int>(random() % 2001 - 1000) * loudness / 1000));
    audio.resize(audio.size() + random() % static_cast<unsigned>(rate / 5));
  }
  return audio;
}

Decisions decide(VoiceDetector& detector, const Audio& audio) {
  Decisions decisions;
  auto frames = std::span(audio);
  while (!frames.empty()) {
    const std::size_t next = std::min(frames.size(), detector.missing());
    if (const auto speech = detector.add(std::as_bytes(frames.first(next))))
      decisions.push_back(*speech);
    frames = frames.subspan(next);
  }
  return decisions;
}

Decisions decide(double rate, std::uint32_t sensitivity, const Audio& audio) {
  VoiceDetector detector(mono_type(rate), sensitivity);
  return decide(detector, audio);
}

// The decisions of the library with its default configuration.
Decisions library(int rate, int likelihood, const Audio& audio) {
  const std::unique_ptr<webrtc::AudioProcessing> processing(webrtc::AudioProcessing::Create());
  webrtc::VoiceDetection& detection = *processing->voice_detection();
  REQUIRE(detection.set_likelihood(static_cast<webrtc::VoiceDetection::Likelihood>(likelihood)) ==
          0);
  REQUIRE(detection.Enable(true) == 0);
  webrtc::AudioFrame frame;
  Decisions decisions;
  const auto piece = static_cast<std::size_t>(rate / 100);
  for (std::size_t at = 0; at + piece <= audio.size(); at += piece) {
    frame.UpdateFrame(0, 0, &audio[at], piece, rate, webrtc::AudioFrame::kNormalSpeech,
                      webrtc::AudioFrame::kVadUnknown);
    REQUIRE(processing->ProcessStream(&frame) == 0);
    decisions.push_back(detection.stream_has_voice());
  }
  return decisions;
}

std::ptrdiff_t speech(const Decisions& decisions) { return std::ranges::count(decisions, true); }

}  // namespace

TEST_CASE("a detector decides as the bare library, at each rate and sensitivity") {
  for (const int rate : {8000, 16000, 32000, 48000})
    for (int sensitivity = 0; sensitivity <= 3; ++sensitivity) {
      const Audio audio = bursts(rate, 1);
      const Decisions expected = library(rate, sensitivity, audio);
      CAPTURE(rate, sensitivity);
      CHECK(decide(rate, static_cast<std::uint32_t>(sensitivity), audio) == expected);
      CHECK(speech(expected) > 0);
      CHECK(speech(expected) < static_cast<std::ptrdiff_t>(expected.size()));
    }
}

TEST_CASE("a higher sensitivity finds more speech") {
  std::vector<std::ptrdiff_t> found;
  for (std::uint32_t sensitivity = 0; sensitivity <= 3; ++sensitivity)
    found.push_back(speech(decide(16000, sensitivity, bursts(16000, 2))));
  CHECK(std::ranges::is_sorted(found));
  CHECK(found.front() < found.back());
}

TEST_CASE("a restarted detector decides as a new one") {
  for (const int rate : {8000, 16000, 32000, 48000})
    for (unsigned seed = 0; seed < 5; ++seed) {
      VoiceDetector detector(mono_type(rate), 2);
      Audio before = bursts(rate, seed);
      before.resize(before.size() / 100 * 100 + 7);  // ends within a piece
      decide(detector, before);
      detector.restart();
      const Audio after = bursts(rate, seed + 100);
      CAPTURE(rate, seed);
      CHECK(decide(detector, after) == decide(rate, 2, after));
    }
}

TEST_CASE("a piece has 10 ms, however the frames are split") {
  for (const int rate : {8000, 16000, 32000, 48000}) {
    VoiceDetector detector(mono_type(rate), 2);
    CHECK(detector.piece() == static_cast<std::size_t>(rate / 100));
    const Audio audio = bursts(rate, 3);
    const Decisions expected = decide(rate, 2, audio);
    std::mt19937 random(1);
    Decisions decisions;
    for (auto frames = std::as_bytes(std::span(audio)); !frames.empty();) {
      const std::size_t most = std::min(detector.missing(), frames.size() / 2);
      const std::size_t next = 2 * (1 + random() % most);
      const bool ends_piece = next == 2 * detector.missing();
      const auto speech = detector.add(frames.first(next));
      CHECK(speech.has_value() == ends_piece);
      if (speech) decisions.push_back(*speech);
      frames = frames.subspan(next);
    }
    CHECK(decisions == expected);
  }
}

TEST_CASE("the channels of floats are averaged") {
  const Audio audio = bursts(16000, 4);
  std::vector<float> stereo;
  for (const std::int16_t value : audio) {
    stereo.push_back(static_cast<float>(value) / 32768 + 0.25f);
    stereo.push_back(static_cast<float>(value) / 32768 - 0.25f);
  }
  VoiceDetector detector({.element = Element::f32, .values = 2}, 2);
  Decisions decisions;
  for (std::size_t at = 0; at + 320 <= stereo.size(); at += 320)
    decisions.push_back(detector.add(std::as_bytes(std::span(stereo).subspan(at, 320))).value());
  CHECK(decisions == decide(16000, 2, audio));
}

TEST_CASE("after speech, silence is found within 150 ms") {
  Audio audio;
  test::SpeechLike().append(audio, 16000);
  audio.resize(32000);
  for (std::uint32_t sensitivity = 0; sensitivity <= 3; ++sensitivity) {
    const Decisions decisions = decide(16000, sensitivity, audio);
    CHECK(speech(decisions) >= 100);
    CHECK(speech(decisions) <= 115);
    CHECK_FALSE(decisions.back());
  }
}

TEST_CASE("only four rates are possible") {
  for (const double rate : {8000., 16000., 32000., 48000.}) CHECK(VoiceDetector::has_rate(rate));
  for (const double rate : {11025., 16000.5, 24000., 44100., 100.})
    CHECK_FALSE(VoiceDetector::has_rate(rate));
}

TEST_CASE("pieces need no allocation, and up to 16 kHz restarts need none") {
  for (const int rate : {8000, 16000, 32000, 48000}) {
    VoiceDetector detector(mono_type(rate), 2);
    const Audio audio(static_cast<std::size_t>(rate / 100));
    const auto piece = std::as_bytes(std::span(audio));
    const std::size_t before = test::allocations();
    for (int i = 0; i < 100; ++i) {
      detector.add(piece);
      if (rate <= 16000) detector.restart();
    }
    CHECK(test::allocations() == before);
  }
}

TEST_CASE("a detector takes at most the stated memory, and at most 32 KiB") {
  for (const int rate : {8000, 16000, 32000, 48000}) {
    decide(rate, 2, bursts(rate, 1));  // allocates what all detectors share
    constexpr std::size_t count = 100;
    std::vector<std::unique_ptr<VoiceDetector>> detectors;
    detectors.reserve(count);
    const Audio audio = bursts(rate, 1);
    const std::size_t before = mallinfo2().uordblks;
    for (std::size_t i = 0; i < count; ++i)
      detectors.emplace_back(VoiceDetector::of(EndpointRule{.sensitivity = 2}, mono_type(rate)))
          ->add(std::as_bytes(std::span(audio).first(80)));
    const std::size_t each = (mallinfo2().uordblks - before) / count;
    CAPTURE(rate, each);
    CHECK(each <= VoiceDetector::bytes(rate));
    CHECK(VoiceDetector::bytes(rate) <= 32 << 10);
  }
}
