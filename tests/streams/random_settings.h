// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "streams/stream.h"

namespace millrace::test {

// Draws the actions of a random play.
class Draw {
 public:
  explicit Draw(std::uint32_t seed) : random_(seed) {}
  std::uint32_t operator()(std::uint32_t from, std::uint32_t to) {
    return std::uniform_int_distribution<std::uint32_t>(from, to)(random_);
  }
  bool chance(std::uint32_t percent) { return (*this)(1, 100) <= percent; }

 private:
  std::mt19937 random_;
};

inline SizeRule random_sizes(Draw& draw) {
  const bool is_range = draw.chance(30);
  SizeRule rule{.by = is_range ? SizeRule::By::random : static_cast<SizeRule::By>(draw(0, 2)),
                .seed = draw(0, 1000),
                .per = static_cast<SizeRule::Per>(draw(0, 1))};
  const std::uint32_t from = draw(1, 20), step = draw(1, 8);
  if (is_range) {
    rule.sizes = SizeList(from, from + step * draw(1, 9), step);
  } else {
    std::vector<std::uint32_t> sizes{from};
    for (std::uint32_t more = draw(1, 4); more > 0; --more)
      sizes.push_back(sizes.back() + draw(1, 12));
    rule.sizes = SizeList(std::move(sizes));
  }
  return rule;
}

inline std::uint32_t one_of(const SizeList& sizes, Draw& draw) {
  return sizes[draw(0, static_cast<std::uint32_t>(sizes.size()) - 1)];
}

inline ChunkRule random_rule(Draw& draw) {
  ChunkRule rule;
  Spec& spec = rule.spec;
  spec = {.left = draw(0, 30),
          .right = draw(0, 20),
          .tail = static_cast<Spec::Tail>(draw(0, 2)),
          .min = draw(0, 9)};
  if (draw.chance(80)) {
    rule.sizes = random_sizes(draw);
    spec.size = one_of(rule.sizes.sizes, draw);
    const std::uint32_t shortest = spec.size - rule.sizes.sizes.smallest() + 1;
    if (draw.chance(50)) spec.first = draw(shortest, spec.size + 20);
    return rule;
  }
  do {
    spec.size = draw(1, 30);
    spec.step = draw.chance(50) ? draw(1, 40) : 0;
    spec.first = draw.chance(50) ? draw(1, 40) : 0;
  } while (!spec.check());
  return rule;
}

// A stream with any rule, with or without endpoints, a bounded wait, and shedding.
inline StreamSettings random_settings(Draw& draw) {
  // Bodies of milliseconds to seconds, so that adaptive sizes change too.
  const FrameType type{.rate = std::pow(10.0, draw(2, 4))};
  StreamSettings settings{.name = "stream " + std::to_string(draw(0, 9)),
                          .type = type,
                          .format = format_of(SampleFormat::s16le, type),
                          .chunk = random_rule(draw)};
  const SizeList& sizes = settings.chunk.sizes.sizes;
  if (!sizes.empty() && draw.chance(30)) settings.requested_size = one_of(sizes, draw);
  if (draw.chance(80))
    settings.endpoint =
        EndpointRule{.by = draw.chance(70) ? EndpointRule::By::worker : EndpointRule::By::length,
                     .max = draw.chance(50) ? draw(1, 120) : 1'000'000,
                     .on_endpoint = static_cast<EndpointRule::On>(draw(0, 1))};
  settings.frames_limit = settings.chunk.width() + draw(0, 300);
  settings.max_wait = std::chrono::milliseconds(draw(0, 10));
  if (draw.chance(50)) settings.shed_after = std::chrono::milliseconds(draw(3, 40));
  return settings;
}

}  // namespace millrace::test
