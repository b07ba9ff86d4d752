// SPDX-License-Identifier: Apache-2.0
#include "load/streams/schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "chunker/mix.h"

namespace millrace::load {

namespace {

enum Draw : std::uint64_t {
  phase_draw,
  jitter_draw,
  life_draw,
  end_draw,
  cut_draw,
  how_draw,
  part_draw
};

Duration part_of(Duration time, double part) {
  return Duration(static_cast<Duration::rep>(static_cast<double>(time.count()) * part));
}

}  // namespace

Schedule::Schedule(const LoadPlan& plan) : plan_(plan) {}

double Schedule::draw(std::uint64_t what, std::uint64_t client, std::uint64_t packet) const {
  const std::uint64_t bits = mix(mix(mix(plan_.seed ^ what << 56) ^ client) ^ packet);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

Time Schedule::turn(std::uint32_t client, std::uint64_t packet) const {
  double phase = 0;
  if (plan_.phase == Phase::uniform) phase = double(client) / plan_.streams;
  if (plan_.phase == Phase::random) phase = draw(phase_draw, client, 0);
  return begin() + part_of(plan_.packet, phase) + plan_.packet * static_cast<Duration::rep>(packet);
}

Time Schedule::due(std::uint32_t client, std::uint64_t packet) const {
  const Time turn = this->turn(client, packet);
  if (plan_.jitter == Duration::zero()) return turn;
  return turn + part_of(plan_.jitter, draw(jitter_draw, client, packet));
}

std::uint64_t Schedule::first_from(std::uint32_t client, Time time) const {
  const Time first = turn(client, 0);
  if (time <= first) return 0;
  return static_cast<std::uint64_t>((time - first + plan_.packet - Duration(1)) / plan_.packet);
}

std::uint64_t Schedule::packets_of_life(std::uint32_t client, std::uint64_t first) const {
  if (!plan_.life) return std::numeric_limits<std::uint64_t>::max() - first;
  const double mean = std::chrono::duration<double>(*plan_.life) / plan_.packet;
  const double drawn = -mean * std::log1p(-draw(life_draw, client, first));
  return static_cast<std::uint64_t>(std::max(1.0, std::round(drawn)));
}

bool Schedule::disconnects(std::uint32_t client, std::uint64_t first) const {
  return draw(end_draw, client, first) < plan_.aborts;
}

std::optional<Cut> Schedule::cut(std::uint32_t client, std::uint64_t number, Time previous) const {
  Cut cut{.resets = draw(how_draw, client, number) < 0.5};
  if (plan_.cut_all) {
    cut.at = counted_from() + *plan_.cut_all;
    return number == 0 ? std::optional(cut) : std::nullopt;
  }
  if (plan_.cuts <= 0) return std::nullopt;
  const std::chrono::duration<double> wait(-std::log1p(-draw(cut_draw, client, number)) /
                                           plan_.cuts);
  if (wait >= last() - previous) return std::nullopt;
  cut.at = previous + std::chrono::duration_cast<Duration>(wait);
  // Half of the cuts are at any time; of the others, a third are directly after a packet.
  const double part = draw(part_draw, client, number);
  if (part < 0.5) cut.part = std::min(1.0, 3 * part);
  return cut;
}

std::size_t Schedule::windows() const {
  return static_cast<std::size_t>((plan_.length + plan_.window - Duration(1)) / plan_.window);
}

}  // namespace millrace::load
