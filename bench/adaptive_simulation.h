// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"
#include "load/streams/histogram.h"

namespace millrace::bench {

// The time that a worker needs for a batch: t0 + k * rows + c * rows * width. All times are in
// seconds, the width too.
struct ServiceTime {
  double t0 = 0, k = 0, c = 0;
  double at(double rows, double width) const { return t0 + k * rows + c * rows * width; }
};

// A pipeline with one worker, and its clients, which send packets in real time with random phases.
// A frame is a millisecond.
struct Scene {
  ServiceTime service;
  std::vector<std::uint32_t> sizes;
  std::optional<std::uint32_t> fixed;  // the size of all streams; nullopt: sizes are adaptive
  std::uint32_t begin = 0;             // the first size of adaptive streams; 0: as in the service
  Duration max_wait{};
  std::uint32_t rows = 64;  // the most rows of a batch
  std::uint32_t credits = 2;
  std::uint32_t packet = 20;  // frames

  std::uint32_t streams = 0;  // the number of streams
  std::uint32_t later = 0;    // the number of these that open at the step, not at the start
  Duration step{};            // time of the step
  Duration warm_up{};         // time before latencies are measured
  Duration end{};
  Duration longest_wait{};  // the simulation ends if a row has waited longer
  std::uint32_t seed = 1;
};

struct Outcome {
  load::Histogram latency;     // from the time when a frame was due to the result of its row
  load::Histogram waits;       // from ready to taken
  double changes_in_10s = 0;   // size changes of one stream
  std::vector<double> shares;  // the share of each size, by frames
  std::vector<load::Histogram> by_second;  // latency of the frames that were due in each second
  bool collapsed = false;                  // a row has waited for longer than Scene::longest_wait
};

// The number of streams that the worker carries if all have this size: with as many rows in each
// batch as possible, it processes as many rows as they give. 0 if a batch takes longer than a body.
std::uint32_t capacity(const Scene& scene, std::uint32_t size);

// Runs the scene in virtual time, with the streams and the lanes of the service.
Outcome simulate(const Scene& scene);

}  // namespace millrace::bench
