// SPDX-License-Identifier: Apache-2.0
// Measures the conversion of a client's audio on one core, beside the bare library that is fed the
// same pieces as floats. Both take turns, so that other load on the machine affects them alike. The
// times are those of the thread on the core.
#include <opus/opus.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/enum_names.h"
#include "bench/options.h"
#include "bench/paired_runs.h"
#include "input/conversion_bytes.h"
#include "input/input_converter.h"
#include "input/resamplers/resampler.h"

using namespace millrace;

namespace {

constexpr int packets_per_second[] = {50, 10};  // packets of 20 and of 100 ms
constexpr std::size_t most_frames = 1000;       // that a sink holds

// Counts frames, and writes over the same memory again and again.
class Overwritten : public FrameSink {
 public:
  explicit Overwritten(const FrameType& type)
      : frame_(type.bytes()), memory_(most_frames * frame_) {}
  MutableBytes writable(std::size_t frames) override {
    return MutableBytes(memory_).first(std::min(frames, most_frames) * frame_);
  }
  void append(std::size_t frames) override { count += frames; }

  std::uint64_t count = 0;

 private:
  const std::size_t frame_;
  std::vector<std::byte> memory_;
};

using Message = std::vector<std::byte>;
using Task = std::function<void()>;  // a second of audio

// One second of noise, in packets.
std::vector<Message> packets(const ClientFormat& from, int per_second) {
  std::mt19937 random(1);
  const auto frames = static_cast<std::size_t>(from.rate) / static_cast<std::size_t>(per_second);
  std::vector<Message> all(static_cast<std::size_t>(per_second),
                           Message(frames * from.values * size_of(from.format)));
  for (Message& packet : all)
    for (std::byte& byte : packet) byte = static_cast<std::byte>(random());
  if (from.format == SampleFormat::f32le)
    for (Message& packet : all)
      for (std::size_t i = 0; i < packet.size(); i += sizeof(float)) {
        const float value = std::uniform_real_distribution<float>(-1, 1)(random);
        std::memcpy(&packet[i], &value, sizeof value);
      }
  return all;
}

// Medians of the microseconds per 100 ms of audio.
struct Pair {
  std::vector<double> ours, control;
  static double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values.empty() ? 0 : values[values.size() / 2];
  }
  double ratio() const { return median(control) / median(ours); }
};

double microseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

double timed(const Task& task) {
  const double start = microseconds();
  task();
  return (microseconds() - start) / 10;
}

Pair in_turn(const Task& ours, const Task& control, int runs) {
  Pair pair;
  ours(), control();
  for (int run = 0; run < runs; ++run) {
    pair.ours.push_back(timed(ours));
    pair.control.push_back(timed(control));
  }
  return pair;
}

// The greatest delay of frames, in ms, of a client that sends one frame at a time.
double delay(const ClientFormat& from, const FrameType& to) {
  InputConverter converter(from, to);
  Overwritten frames(to);
  const Message frame(size_of(from.format) * from.values);
  double latest = 0;
  for (int sent = 1; sent < static_cast<int>(from.rate / 2); ++sent) {
    latest = std::max(latest, sent / from.rate - static_cast<double>(frames.count) / to.rate);
    (void)converter.convert(frame, frames);
  }
  return latest * 1000;
}

double kib(const ClientFormat& from, const FrameType& to) {
  return static_cast<double>(conversion_bytes(from, to)) / 1024;
}

// A converter that is fed a second of audio in each run.
Task conversion(const ClientFormat& from, const FrameType& to, std::vector<Message> messages) {
  auto converter = std::make_shared<InputConverter>(from, to);
  auto frames = std::make_shared<Overwritten>(to);
  return [converter, frames, messages = std::move(messages)] {
    for (const Message& message : messages) (void)converter->convert(message, *frames);
  };
}

Task bare_resampler(const Rates& rates, int per_second) {
  std::shared_ptr<Resampler> resampler = open_resampler(rates, 1);
  std::mt19937 random(1);
  std::vector<float> in(rates.from / static_cast<std::uint32_t>(per_second));
  for (float& value : in) value = std::uniform_real_distribution<float>(-1, 1)(random);
  std::vector<float> out(rates.to);
  return [=, out = std::move(out)]() mutable {
    for (int i = 0; i < per_second; ++i)
      for (std::size_t taken = 0; taken < in.size();)
        taken +=
            resampler->convert(in.data() + taken, in.size() - taken, out.data(), out.size()).taken;
  };
}

Pair resampled(double from, double to, int per_second, int runs) {
  const ClientFormat client{.rate = from};
  const Rates rates{static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to)};
  return in_turn(conversion(client, {.rate = to}, packets(client, per_second)),
                 bare_resampler(rates, per_second), runs);
}

void print_rates(const std::vector<double>& to_rates, int runs) {
  std::printf("%-18s %-9s %9s %9s %7s %9s %9s %7s %9s %9s\n", "s16le to s16, mono", "library",
              "us, 20ms", "bare", "ratio", "us, 100ms", "bare", "ratio", "delay ms", "KiB max");
  for (const double to : to_rates)
    for (const double from : {8000.0, 11025.0, 16000.0, 22050.0, 24000.0, 32000.0, 44100.0, 48000.0,
                              88200.0, 96000.0, 176400.0, 192000.0}) {
      if (from == to) continue;
      const ClientFormat client{.rate = from};
      const Rates rates{static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to)};
      std::printf("%7.0f to %7.0f %-9s", from, to,
                  std::string(name_of(resampler_library(rates))).c_str());
      for (const int per_second : packets_per_second) {
        const Pair pair = resampled(from, to, per_second, runs);
        std::printf(" %9.1f %9.1f %6.0f%%", Pair::median(pair.ours), Pair::median(pair.control),
                    100 * pair.ratio());
      }
      std::printf(" %9.1f %9.1f\n", delay(client, {.rate = to}), kib(client, {.rate = to}));
    }
}

void print_same_rate(int runs) {
  struct Line {
    const char* name;
    ClientFormat from;
    FrameType to;
  };
  constexpr double rate = 48000;
  const FrameType mono{.rate = rate}, stereo{.values = 2, .rate = rate};
  const FrameType floats{.element = Element::f32, .values = 2, .rate = rate};
  std::vector<Line> lines;
  const auto add = [&](const char* name, SampleFormat format, const FrameType& to,
                       ChannelChoice choice = AllChannels{}) {
    lines.push_back({name, {format, 2, rate, choice}, to});
  };
  using enum SampleFormat;
  add("s16le to s16, both channels", s16le, stereo);
  add("s16le to s16, one channel", s16le, mono, OneChannel{0});
  add("s16le to s16, mean", s16le, mono, MeanOfChannels{});
  add("s16le to f32, both channels", s16le, floats);
  add("s24le to s16, both channels", s24le, stereo);
  add("s24le to s16, mean", s24le, mono, MeanOfChannels{});
  add("f32le to s16, both channels", f32le, stereo);
  add("f32le to s16, one channel", f32le, mono, OneChannel{1});
  add("f32le to s16, mean", f32le, mono, MeanOfChannels{});
  add("f32le to f32, both channels", f32le, floats);
  add("mulaw to s16, both channels", mulaw, stereo);
  add("mulaw to s16, mean", mulaw, mono, MeanOfChannels{});
  add("alaw to s16, both channels", alaw, stereo);
  std::printf("\n%-36s %9s %9s\n", "48 kHz stereo, without a resampler", "us, 20ms", "us, 100ms");
  for (const Line& line : lines) {
    std::printf("%-36s", line.name);
    for (const int per_second : packets_per_second) {
      const Task task = conversion(line.from, line.to, packets(line.from, per_second));
      std::printf(" %9.2f", Pair::median(in_turn(
                                             task, [] {}, runs)
                                             .ours));
    }
    std::printf("\n");
  }
}

// A second of a chord, in packets of 20 ms.
std::vector<Message> opus_packets(int channels) {
  const std::unique_ptr<OpusEncoder, void (*)(OpusEncoder*)> encoder(
      opus_encoder_create(48000, channels, OPUS_APPLICATION_AUDIO, nullptr), opus_encoder_destroy);
  std::mt19937 random(1);
  std::vector<float> audio(static_cast<std::size_t>(960 * channels));
  std::vector<Message> all;
  for (std::size_t i = 0; i < 50; ++i) {
    for (std::size_t k = 0; k < audio.size(); ++k) {
      const auto t = static_cast<float>(i * audio.size() + k);
      audio[k] = 0.3f * std::sin(t * 0.02f) + 0.2f * std::sin(t * 0.07f) +
                 std::uniform_real_distribution<float>(-0.1f, 0.1f)(random);
    }
    Message packet(4000);
    packet.resize(static_cast<std::size_t>(opus_encode_float(
        encoder.get(), audio.data(), 960, reinterpret_cast<unsigned char*>(packet.data()), 4000)));
    all.push_back(packet);
  }
  return all;
}

Task bare_opus(int rate, int channels, std::vector<Message> messages) {
  std::shared_ptr<OpusDecoder> decoder(opus_decoder_create(rate, channels, nullptr),
                                       opus_decoder_destroy);
  return [decoder, messages = std::move(messages), pcm = std::vector<float>(5760 * 2)]() mutable {
    int frames = 0;
    for (const Message& message : messages)
      frames +=
          opus_decode_float(decoder.get(), reinterpret_cast<const unsigned char*>(message.data()),
                            static_cast<opus_int32>(message.size()), pcm.data(), 5760, 0);
    return frames > 0;
  };
}

void print_opus(int runs) {
  std::printf("\n%-36s %9s %9s %7s %9s\n", "Opus, packets of 20 ms, to s16 mono", "us", "bare",
              "ratio", "KiB max");
  for (const std::uint32_t channels : {1u, 2u})
    for (const double rate : {8000.0, 16000.0, 24000.0, 48000.0, 44100.0}) {
      const ClientFormat from{SampleFormat::opus, channels, 48000, MeanOfChannels{}};
      const FrameType to{.rate = rate};
      const auto messages = opus_packets(static_cast<int>(channels));
      const bool resampled = rate == 44100;
      const Task decoder = bare_opus(resampled ? 48000 : static_cast<int>(rate),
                                     static_cast<int>(channels), messages);
      const Task resampler = bare_resampler({48000, 44100}, 50);
      const Task control = [&] {
        decoder();
        if (resampled) resampler();
      };
      const Pair pair = in_turn(conversion(from, to, messages), control, runs);
      std::printf("%u channel(s), pipeline of %6.0f Hz%6s %9.1f %9.1f %6.0f%% %9.1f\n", channels,
                  rate, "", Pair::median(pair.ours), Pair::median(pair.control), 100 * pair.ratio(),
                  kib(from, to));
    }
}

}  // namespace

int main(int argc, char** argv) {
  int runs = 15;
  bool json = false;
  std::vector<double> rates{8000, 16000, 24000, 44100, 48000};
  bench::Options("Measure the conversion of audio on one core, per 100 ms of one stream")
      .add("--runs", runs, "Runs of each line and its control, in turn; each has a second")
      .add("--to", rates, "Rates of pipelines")
      .flag("--json", json, "Print 48 to 16 kHz in packets of 20 ms as a line of JSON")
      .parse(argc, argv);
  if (json) {
    const Pair pair = resampled(48000, 16000, 50, runs);
    std::printf("%s\n", bench::json_of(pair.ours, pair.control).c_str());
    return 0;
  }
  print_rates(rates, runs);
  print_same_rate(runs);
  print_opus(runs);
}
