// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <string>

#include "streams/stream.h"
#include "tests/cutting/random_rules.h"

namespace millrace::test {

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
  settings.longest_post = 250;
  settings.max_wait = std::chrono::milliseconds(draw(0, 10));
  if (draw.chance(50)) settings.shed_after = std::chrono::milliseconds(draw(3, 40));
  return settings;
}

}  // namespace millrace::test
