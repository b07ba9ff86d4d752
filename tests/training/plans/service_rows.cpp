// SPDX-License-Identifier: Apache-2.0
#include "tests/training/plans/service_rows.h"

#include <algorithm>
#include <array>

#include "cutting/cutter.h"

namespace millrace::training {
namespace {

using Kind = Event::Kind;

}  // namespace

std::vector<CutRow> service_rows(const ChunkRule& rule, const std::string& name,
                                 const std::vector<InnerEvent>& events, std::uint64_t frames,
                                 std::mt19937_64& random) {
  Cutter cutter(rule, {.stream = name});
  std::vector<CutRow> rows;
  const auto take = [&] {
    while (const auto row = cutter.next()) rows.push_back({*row, cutter.index(row->begin)});
  };
  const auto enter = [&](const Event& event) {
    take();
    cutter.add(event);
    take();
  };
  std::uint64_t fed = 0;
  const auto feed = [&](std::uint64_t until) {
    take();
    while (fed < until) {
      const std::uint64_t count = 1 + random() % std::min(until - fed, cutter.frames_until_next());
      enter({.kind = Kind::frames, .count = count});
      fed += count;
    }
  };
  for (const InnerEvent& event : events) {
    feed(event.frame);
    enter(event.event);
  }
  if (cutter.ended()) return rows;
  feed(frames);
  enter({.kind = Kind::end});
  return rows;
}

std::vector<CutRow> planned(std::vector<CutRow> rows) {
  const bool anew = !rows.empty() && !rows.front().row.is(flag::start);
  const auto first =
      std::ranges::find_if(rows, [](const CutRow& cut) { return cut.row.has_frames(); });
  rows.erase(rows.begin(), first);
  if (!rows.empty() && !anew) rows.front().row.flags |= flag::start;
  return rows;
}

ChunkRule random_rule(std::mt19937_64& random, bool sizes) {
  const auto number = [&](std::uint32_t from, std::uint32_t to) {
    return from + static_cast<std::uint32_t>(random() % (to - from + 1));
  };
  constexpr auto tails = values_of<Spec::Tail>();
  for (;;) {
    ChunkRule rule;
    rule.spec = {.size = number(1, 6),
                 .step = sizes ? 0 : number(0, 7),
                 .first = number(0, 2) == 0 ? number(1, 8) : 0,
                 .left = number(0, 3),
                 .right = number(0, 4),
                 .tail = tails[random() % tails.size()],
                 .min = number(0, 4)};
    rule.align = number(0, 1) == 0 ? Align::body : Align::packed;
    if (!rule.spec.check()) continue;
    if (!sizes) return rule;
    rule.spec.size = 3;
    rule.sizes = {.by = values_of<SizeRule::By>()[random() % 3],
                  .sizes = SizeList(std::vector<std::uint32_t>{3, 4, 7}),
                  .seed = random() % 5,
                  .per = values_of<SizeRule::Per>()[random() % 2]};
    return rule;
  }
}

std::vector<InnerEvent> random_events(std::uint64_t frames, std::mt19937_64& random) {
  std::vector<InnerEvent> events(random() % 5);
  for (InnerEvent& inner : events) {
    constexpr std::array kinds{Kind::flush, Kind::reset, Kind::gap};
    inner.frame = random() % (frames + 1);
    inner.event.kind = kinds[random() % kinds.size()];
    inner.event.count = inner.event.kind == Kind::gap ? 1 + random() % 9 : 0;
    if (inner.event.kind == Kind::flush && random() % 2 == 0) inner.event.mark = random() % 9;
  }
  std::ranges::stable_sort(events, {}, &InnerEvent::frame);
  if (random() % 5 == 0)
    events.push_back({{.kind = Kind::abort, .cause = Cause::connection}, frames});
  return events;
}

}  // namespace millrace::training
