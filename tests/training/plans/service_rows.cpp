// SPDX-License-Identifier: Apache-2.0
#include "tests/training/plans/service_rows.h"

#include <algorithm>
#include <array>

#include "chunker/chunker.h"
#include "cutting/event_sources.h"

namespace millrace::training {
namespace {

using Kind = Event::Kind;

class LiveStream {
 public:
  LiveStream(const ChunkRule& rule, const std::string& name)
      : chunker_(rule.chunker_spec()),
        sources_({.stream = name,
                  .frames = frames_,
                  .chunk = rule,
                  .requested_size = {},
                  .max_wait = {},
                  .endpoint = endpoint_},
                 stats_, chosen_) {
    chunker_.add({.kind = Kind::open});
  }

  void add(const Event& event) {
    choose_size();
    enter(event);
  }
  // The most frames that the next event may have.
  std::uint64_t frames_until_next() {
    choose_size();
    return chunker_.frames_until_next();
  }
  bool ended() const { return chunker_.ended(); }
  std::vector<CutRow> rows() const { return rows_; }

 private:
  void choose_size() {
    if (const auto size = sources_.size(Duration{})) enter(*size);
  }
  void enter(const Event& event) {
    chunker_.add(event);
    sources_.added(event);
    while (const auto row = chunker_.next()) {
      rows_.push_back({*row, row->begin - skipped_});
      sources_.cut(*row);
    }
    if (event.kind == Kind::gap) skipped_ += event.count;
  }

  const FrameType frames_;
  const std::optional<EndpointRule> endpoint_;
  CutStats stats_;
  std::uint32_t chosen_ = 0;
  Chunker chunker_;
  EventSources sources_;
  std::uint64_t skipped_ = 0;
  std::vector<CutRow> rows_;
};

}  // namespace

std::vector<CutRow> service_rows(const ChunkRule& rule, const std::string& name,
                                 const std::vector<InnerEvent>& events, std::uint64_t frames,
                                 std::mt19937_64& random) {
  LiveStream stream(rule, name);
  std::uint64_t fed = 0;
  const auto feed = [&](std::uint64_t until) {
    while (fed < until) {
      const std::uint64_t most = std::min(until - fed, stream.frames_until_next());
      const std::uint64_t count = 1 + random() % most;
      stream.add({.kind = Kind::frames, .count = count});
      fed += count;
    }
  };
  for (const InnerEvent& event : events) {
    feed(event.frame);
    stream.add(event.event);
  }
  if (stream.ended()) return stream.rows();
  feed(frames);
  stream.add({.kind = Kind::end});
  return stream.rows();
}

std::vector<CutRow> planned(std::vector<CutRow> rows) {
  const auto first =
      std::ranges::find_if(rows, [](const CutRow& cut) { return cut.row.has_frames(); });
  rows.erase(rows.begin(), first);
  if (!rows.empty()) rows.front().row.flags |= flag::start;
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
