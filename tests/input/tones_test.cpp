// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>
#include <numbers>
#include <vector>

#include "tests/input/conversion.h"

using namespace millrace;
using test::converted;
using test::values_of;

namespace {

constexpr double pipeline_rate = 16000, amplitude = 0.9;
const std::vector<double> client_rates{8000,  11025, 22050, 24000, 32000,
                                       44100, 48000, 96000, 192000};

double phase(double hertz, double rate, std::size_t i) {
  return 2 * std::numbers::pi * hertz * static_cast<double>(i) / rate;
}

// Half a second of a tone, converted; without the start and the end.
template <class Value>
std::vector<double> converted_tone(double hertz, double rate) {
  constexpr bool whole = std::is_integral_v<Value>;
  constexpr double one = whole ? 32768 : 1;
  std::vector<Value> tone(static_cast<std::size_t>(rate / 2));
  for (std::size_t i = 0; i < tone.size(); ++i) {
    const double value = amplitude * one * std::sin(phase(hertz, rate, i) + 0.3);
    tone[i] = static_cast<Value>(whole ? std::nearbyint(value) : value);
  }
  const auto frames = values_of<Value>(
      converted({.format = whole ? SampleFormat::s16le : SampleFormat::f32le, .rate = rate},
                {.element = whole ? Element::s16 : Element::f32}, test::bytes_of(tone)));
  std::vector<double> middle;
  for (std::size_t i = frames.size() / 5; i < frames.size() * 4 / 5; ++i)
    middle.push_back(static_cast<double>(frames[i]) / one);
  return middle;
}

double energy(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return sum;
}

double decibels(double ratio) { return 10 * std::log10(ratio + 1e-30); }

// The ratio of the tone to the rest, in dB. The tone is the least-squares fit of a sine and a
// cosine.
double signal_to_noise(const std::vector<double>& values, double hertz) {
  double ss = 0, cc = 0, sc = 0, vs = 0, vc = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double s = std::sin(phase(hertz, pipeline_rate, i));
    const double c = std::cos(phase(hertz, pipeline_rate, i));
    ss += s * s, cc += c * c, sc += s * c, vs += values[i] * s, vc += values[i] * c;
  }
  const double determinant = ss * cc - sc * sc;
  const double a = (vs * cc - vc * sc) / determinant, b = (vc * ss - vs * sc) / determinant;
  std::vector<double> rest = values;
  for (std::size_t i = 0; i < rest.size(); ++i)
    rest[i] -=
        a * std::sin(phase(hertz, pipeline_rate, i)) + b * std::cos(phase(hertz, pipeline_rate, i));
  return decibels((energy(values) - energy(rest)) / energy(rest));
}

// The level of the output relative to the tone, in dB.
double level(const std::vector<double>& values) {
  const double full = amplitude * amplitude / 2 * static_cast<double>(values.size());
  return decibels(energy(values) / full);
}

}  // namespace

TEST_CASE("tones up to 0.8 of the lower Nyquist frequency are kept") {
  for (const double rate : client_rates)
    for (const double part : {0.01, 0.1, 0.25, 0.4, 0.55, 0.7, 0.75, 0.8}) {
      const double hertz = part * std::min(rate, pipeline_rate) / 2;
      INFO(rate << " Hz, tone of " << hertz << " Hz");
      const auto floats = converted_tone<float>(hertz, rate);
      CHECK(signal_to_noise(floats, hertz) >= 100);
      CHECK(std::abs(level(floats)) < 0.1);
      CHECK(signal_to_noise(converted_tone<std::int16_t>(hertz, rate), hertz) >= 90);
    }
}

TEST_CASE("tones from 1.2 of the lower Nyquist frequency on are removed") {
  for (const double rate : client_rates)
    for (double part = 1.2; part * pipeline_rate < rate; part *= 1.09) {
      const double hertz = part * pipeline_rate / 2;
      INFO(rate << " Hz, tone of " << hertz << " Hz");
      CHECK(level(converted_tone<float>(hertz, rate)) <= -90);
      CHECK(level(converted_tone<std::int16_t>(hertz, rate)) <= -90);
    }
}
