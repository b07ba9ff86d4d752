// SPDX-License-Identifier: Apache-2.0
#include "checking/check_frames.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <utility>

#include "base/half.h"
#include "schemas/text.h"
#include "training/catalogs/open_catalog.h"

namespace millrace::checking {
namespace {

constexpr double most_seconds = 60;
constexpr std::uint32_t with_pause = 3;     // each third stream
constexpr std::size_t most_name = 80;       // bytes, without a position
constexpr std::size_t most_options = 4000;  // bytes; a worker accepts 4096, and the check adds some

// From -1 to 1.
double noise(Draws& draws) { return static_cast<double>(draws.number(1u << 16)) / 32768 - 1; }

void append(std::vector<std::byte>& into, Element element, double value) {
  const auto add = [&](auto number) {
    const std::size_t end = into.size();
    into.resize(end + sizeof number);
    std::memcpy(into.data() + end, &number, sizeof number);
  };
  if (element == Element::f32) return add(static_cast<float>(value));
  if (element == Element::f16) return add(float_to_half(static_cast<float>(value)));
  add(static_cast<std::int16_t>(std::lround(value * 32767)));
}

// Sounds of 50 to 300 ms: each has its own pitch, its own part of noise, and a loudness that is
// often 0, but not at the begin.
std::vector<std::byte> audio(const FrameType& type, std::uint64_t frames, Draws& draws) {
  std::vector<std::byte> bytes;
  double pitch = 0, loudness = 0, hiss = 0;
  for (std::uint64_t frame = 0, until = 0; frame < frames; ++frame) {
    if (frame == until) {
      until += 1 + static_cast<std::uint64_t>(type.rate * (0.05 + 0.25 * std::abs(noise(draws))));
      pitch = 2 * std::numbers::pi * (80 + 400 * std::abs(noise(draws))) / type.rate;
      loudness = frame > 0 && draws.one_in(3) ? 0 : 0.1 + 0.5 * std::abs(noise(draws));
      hiss = std::abs(noise(draws));
    }
    for (std::uint32_t value = 0; value < type.values; ++value)
      append(bytes, type.element,
             loudness *
                 ((1 - hiss) * std::sin(pitch * static_cast<double>(frame)) + hiss * noise(draws)));
  }
  return bytes;
}

std::vector<std::byte> features(const FrameType& type, std::uint64_t frames, Draws& draws) {
  std::vector<std::byte> bytes;
  std::vector<double> values(type.values);
  for (std::uint64_t frame = 0; frame < frames; ++frame)
    for (double& value : values) {
      value = 0.8 * value + 0.2 * noise(draws);
      append(bytes, type.element, value);
    }
  return bytes;
}

// A client's name for a stream may have fewer characters and bytes than the path of a file.
std::string stream_name(std::string name) {
  for (char& each : name)
    if (!is_name(std::string_view(&each, 1))) each = '-';
  return name.size() > most_name ? name.substr(name.size() - most_name) : name;
}

using Frames = Result<std::vector<StreamFrames>, std::string>;

Frames frames_of(const training::Catalog& catalog, std::uint32_t streams, Draws& draws) {
  const FrameType& type = catalog.frame_type();
  const auto most = static_cast<std::uint64_t>(most_seconds * type.rate);
  const std::uint64_t available = std::min(catalog.size(), most_streams);
  const auto reader = catalog.reader();
  std::vector<StreamFrames> all;
  for (std::uint64_t i = 0; i < std::max<std::uint64_t>(available, streams); ++i) {
    const std::uint64_t stream = i % available, frames = catalog.frames(stream);
    if (frames == 0) continue;
    const std::uint64_t from = i < available ? 0 : draws.number((frames + 1) / 2);
    auto opened = reader->open(stream);
    if (!opened) return opened.error().message;
    const auto bytes = (*opened)->frames(from, std::min(most, frames - from));
    if (!bytes) return bytes.error().message;
    const std::string copy = from > 0 ? "-from-" + std::to_string(from) : "";
    all.push_back({stream_name(catalog.name(stream)) + copy,
                   catalog.meta(stream),
                   {bytes->begin(), bytes->end()}});
    if (all.back().options.size() > most_options)
      return "stream " + all.back().name + " has options of more than 4000 bytes";
  }
  if (all.empty()) return std::string("has no frames");
  return all;
}

}  // namespace

std::vector<StreamFrames> generated_frames(std::uint32_t streams, const FrameType& type,
                                           std::uint32_t body, Draws& draws) {
  std::vector<StreamFrames> all;
  for (std::uint32_t i = 0; i < streams; ++i) {
    const std::uint64_t frames = std::uint64_t{body} * draws.between(6, 14) + draws.number(body);
    std::vector<std::byte> bytes =
        type.features ? features(type, frames, draws) : audio(type, frames, draws);
    if (!type.features && i % with_pause == 0) {
      const auto pause = static_cast<std::uint64_t>(type.rate * (1 + std::abs(noise(draws))));
      bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(frames / 2 * type.bytes()),
                   pause * type.bytes(), std::byte{0});
    }
    all.push_back({"generated-" + std::to_string(i + 1), "", std::move(bytes)});
  }
  return all;
}

Frames frames_at(const std::string& path, const std::string& pipeline, std::uint32_t streams,
                 const FrameType& type, Draws& draws) {
  training::CatalogSettings settings;
  settings.path = path;
  settings.pipeline = pipeline;
  settings.frames = type.element;
  settings.rate = type.rate;
  settings.channels = type.values;
  auto catalog = training::open_catalog(settings);
  if (!catalog) return catalog.error().message;
  if ((*catalog)->frame_type() != type)
    return std::string(path + ": its frames (rate, channels or dim) are not those of the pipeline");
  auto frames = frames_of(**catalog, streams, draws);
  if (!frames) return path + ": " + frames.error();
  return frames;
}

}  // namespace millrace::checking
