// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"
#include "load/streams/histogram.h"

namespace millrace::bench {

// The time that a worker needs for a batch: t0 + k * rows + c * rows * width. In seconds; the width
// too.
struct ServiceTime {
  double t0 = 0.008, k = 0.00025, c = 0;
  double of(double rows, double width) const { return t0 + k * rows + c * rows * width; }
};

// A pipeline with one worker, and its clients. Frames are milliseconds.
struct Scene {
  ServiceTime service;
  std::vector<std::uint32_t> sizes{80, 160, 320, 640};
  std::uint32_t begin = 0;  // size of the first stream, if sizes are adaptive; 0: the smallest
  std::optional<std::uint32_t> fixed;  // all streams have this size
  Duration max_wait{};
  std::uint32_t rows = 64;    // most rows of a batch
  std::uint32_t packet = 20;  // frames
  std::uint32_t credits = 2;
  std::uint32_t before = 0;   // streams from the start
  std::uint32_t streams = 0;  // streams from the step on
  Duration step{};            // when the others open
  Duration measured_from{}, until{};
  Duration stop_at_wait{};  // the simulation ends if a row has waited so long
  std::uint32_t seed = 1;
};

struct Outcome {
  load::Histogram latency;        // of frames, from their due time to their result
  load::Histogram waits;          // of rows, from ready to taken
  double changes_per_minute = 0;  // size changes of a stream
  std::vector<double> shares;     // of the frames, by size
  std::vector<load::Histogram>
      by_second;           // latency of the frames due in each second, from the start
  bool collapsed = false;  // a row waited for Scene::stop_at_wait
};

// The number of streams of one size that the worker of the scene can just carry: 0 if a batch takes
// longer than a body.
std::uint32_t capacity(const Scene& scene, std::uint32_t size);

// Runs the scene in virtual time, with the streams and lanes of the service.
Outcome simulate(const Scene& scene);

}  // namespace millrace::bench
