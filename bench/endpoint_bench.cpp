// SPDX-License-Identifier: Apache-2.0
// Measures endpoints by voice against the bare voice detector, at each rate, in packets of 20 and
// of 100 ms. Both get the same audio, in turns. Ours is all that endpoints add to a stream.
#include <webrtc/modules/audio_processing/include/audio_processing.h>
#include <webrtc/modules/interface/module_common_types.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "base/time.h"
#include "bench/options.h"
#include "bench/paired_runs.h"
#include "input/voice_detector.h"
#include "streams/sources/event_sources.h"

namespace {

using namespace millrace;
using Audio = std::vector<std::int16_t>;

// Bursts of noise with pauses: 3 s and 1 s.
Audio bursts(std::size_t rate, std::size_t seconds) {
  std::mt19937 random(1);
  Audio audio(rate * seconds);
  for (std::size_t i = 0; i < audio.size(); ++i) {
    const int loudness = i / rate % 4 == 3 ? 20 : 4000;
    audio[i] =
        static_cast<std::int16_t>(static_cast<int>(random() % 2001 - 1000) * loudness / 1000);
  }
  return audio;
}

// The sources of a stream with endpoints by voice.
class Ours {
 public:
  explicit Ours(int rate)
      : type_{.rate = static_cast<double>(rate)},
        endpoint_(EndpointRule{.by = EndpointRule::By::vad,
                               .silence = static_cast<std::uint64_t>(rate) * 8 / 10,
                               .max = static_cast<std::uint64_t>(rate) * 20}),
        sources_({.stream = {},
                  .frames = type_,
                  .chunk = chunk_,
                  .requested_size = {},
                  .max_wait = {},
                  .endpoint = endpoint_},
                 stats_, chosen_size_) {
    sources_.added({.kind = Event::Kind::open});
  }

  // As in Stream::cut_rows().
  void packet(std::span<const std::int16_t> frames) {
    for (;;) {
      if (const auto endpoint = sources_.endpoint()) {
        sources_.added(*endpoint);
        Row row;
        row.flags = flag::last;
        sources_.cut(row);
      } else if (frames.empty()) {
        return;
      } else {
        const auto next = std::min<std::uint64_t>(frames.size(), sources_.frames_until_next());
        sources_.added({.kind = Event::Kind::frames, .count = next},
                       {std::as_bytes(frames.first(next)), {}});
        frames = frames.subspan(next);
      }
    }
  }
  std::uint64_t found() const { return stats_.endpoints[EndpointReason::silence].value(); }

 private:
  const FrameType type_;
  const ChunkRule chunk_{.spec = {.size = 1600}};
  const std::optional<EndpointRule> endpoint_;
  StreamStats stats_;
  std::uint32_t chosen_size_ = 0;
  EventSources sources_;
};

// The library alone. Packets are whole pieces.
class Bare {
 public:
  explicit Bare(int rate) : rate_(rate), processing_(webrtc::AudioProcessing::Create()) {
    processing_->voice_detection()->set_likelihood(webrtc::VoiceDetection::kModerateLikelihood);
    processing_->voice_detection()->Enable(true);
  }

  void packet(std::span<const std::int16_t> frames) {
    const auto piece = static_cast<std::size_t>(rate_ / 100);
    for (std::size_t at = 0; at < frames.size(); at += piece) {
      frame_.UpdateFrame(0, 0, &frames[at], piece, rate_, webrtc::AudioFrame::kNormalSpeech,
                         webrtc::AudioFrame::kVadUnknown);
      processing_->ProcessStream(&frame_);
      found_ += processing_->voice_detection()->stream_has_voice() ? 1 : 0;
    }
  }
  std::uint64_t found() const { return found_; }

 private:
  const int rate_;
  const std::unique_ptr<webrtc::AudioProcessing> processing_;
  webrtc::AudioFrame frame_;
  std::uint64_t found_ = 0;
};

// Microseconds per 100 ms of audio.
template <class Detector>
double cost(int rate, int packet_ms, const Audio& audio) {
  Detector detector(rate);
  const auto packet = static_cast<std::size_t>(rate / 1000 * packet_ms);
  const Time began = Clock::now();
  for (std::size_t at = 0; at + packet <= audio.size(); at += packet)
    detector.packet(std::span(audio).subspan(at, packet));
  const Duration took = Clock::now() - began;
  if (detector.found() == 0) std::fprintf(stderr, "no speech found\n");
  return std::chrono::duration<double, std::micro>(took).count() /
         (static_cast<double>(audio.size()) * 10 / rate);
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t seconds = 60, rounds = 9;
  bool json = false;
  bench::Options("Measure endpoints by voice against the bare voice detector")
      .add("--seconds", seconds, "Audio of each measurement")
      .add("--rounds", rounds, "Turns of each")
      .flag("--json", json, "Print the values of each round")
      .parse(argc, argv);
  for (const int rate : {8000, 16000, 32000, 48000})
    for (const int packet_ms : {20, 100}) {
      const Audio audio = bursts(static_cast<std::size_t>(rate), seconds);
      std::vector<double> ours, bare;
      for (std::size_t round = 0; round < rounds; ++round) {
        bare.push_back(cost<Bare>(rate, packet_ms, audio));
        ours.push_back(cost<Ours>(rate, packet_ms, audio));
      }
      if (json)
        std::printf("%s\n", bench::json_of(ours, bare).c_str());
      else
        std::printf(
            "%5d Hz, packets of %3d ms: %6.1f us per 100 ms, bare %6.1f, speed %.2f of it\n", rate,
            packet_ms, median(ours), median(bare), median(bare) / median(ours));
    }
}
