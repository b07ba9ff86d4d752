// SPDX-License-Identifier: Apache-2.0
#include "replay/selection.h"

#include <catch2/catch.hpp>

#include "tests/recording/reader/recorded_directory.h"

namespace millrace {
namespace {

constexpr std::int64_t second = 1'000'000'000;

recording::StreamMeta opened_at(std::uint64_t number, std::int64_t wall, std::int64_t steady) {
  recording::StreamMeta meta = recording::meta_of(number);
  meta.opened_wall = wall * second;
  meta.opened_steady = steady * second;
  return meta;
}

TEST_CASE("between two runs of the service the wall clock gives the distance of streams") {
  recording::RecordedDirectory recorded;
  const auto add = [&](recording::FileNumber file, char run,
                       const std::vector<recording::StreamMeta>& streams) {
    recording::FileWriter writer = recorded.begin(file, run);
    const recording::RecordedEvent open[] = {{{.kind = Event::Kind::open}, Time()}};
    for (const recording::StreamMeta& meta : streams)
      writer.add(meta, 0, meta.opened_wall, {.stream = meta.number, .events = open}, {});
    recording::seal(writer);
  };
  // The machine started again. Its steady clock is higher by chance.
  add(1, 'a', {opened_at(1, 1000, 5), opened_at(2, 1003, 8)});
  add(2, 'b', {opened_at(3, 1010, 90'000), opened_at(4, 1000, 90'002)});
  const auto recordings = recorded.read();
  std::vector<std::int64_t> steady;
  for (const auto& meta : metas_of(*recordings, recording::join_parts(recordings->streams())))
    steady.push_back(meta.opened_steady / second);
  CHECK(steady == std::vector<std::int64_t>{5, 8, 15, 17});
}

}  // namespace
}  // namespace millrace
