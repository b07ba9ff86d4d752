// SPDX-License-Identifier: Apache-2.0
#include "service/admin/stream_walk.h"

#include <algorithm>
#include <chrono>
#include <tuple>

#include "schemas/text.h"
#include "transport/access/tenant_rule.h"

namespace millrace {

namespace {

StreamLine line_of(const Stream& stream, Time now) {
  const StreamSettings& settings = stream.settings();
  const FrameType& type = settings.type;
  const auto duration_of = [&](std::uint64_t frames) {
    return std::chrono::duration_cast<Duration>(
        std::chrono::duration<double>(static_cast<double>(frames) / type.rate));
  };
  return {.name = settings.name,
          .pipeline = std::string(settings.pipeline),
          .format = name_of(settings.format.format),
          .rate = settings.format.rate,
          .chunk = duration_of(stream.body_size()),
          .frames = stream.position(),
          .signal = duration_of(stream.position()),
          .age = now - settings.opened,
          .held = duration_of(stream.held_bytes() / type.bytes()),
          .held_bytes = stream.reclaimable(),
          .paused = stream.paused(),
          .connected = stream.connected() && !stream.detached(),
          .peer = stream.peer()};
}

}  // namespace

void sort(std::vector<StreamLine>& lines, StreamOrder order, std::size_t limit) {
  const auto before = [order](const StreamLine& a, const StreamLine& b) {
    if (order == StreamOrder::name) return a.name < b.name;
    if (order == StreamOrder::held && a.held_bytes != b.held_bytes)
      return a.held_bytes > b.held_bytes;
    return a.age > b.age;
  };
  std::ranges::sort(lines, before);
  if (lines.size() > limit) lines.resize(limit);
}

bool StreamWalk::before(const Candidate& a, const Candidate& b) const {
  if (query_.order == StreamOrder::name) return a.name < b.name;
  return std::tuple(b.held, a.opened) < std::tuple(a.held, b.opened);
}

bool StreamWalk::step(const StreamTable& table) {
  scanned_ ? describe(table) : scan(table);
  return scanned_ && next_ == candidates_.size();
}

void StreamWalk::scan(const StreamTable& table) {
  // At the first slice, or if the table has grown, so that the streams have moved.
  if (table.buckets() != buckets_) {
    buckets_ = table.buckets();
    next_ = 0;
    candidates_.clear();
    list_.total = 0;
  }
  const std::size_t end = std::min(buckets_, next_ + slice);
  table.each_in(next_, end, [this](Stream& stream) { add_candidate(stream); });
  next_ = end;
  scanned_ = next_ == buckets_;
  if (scanned_ || candidates_.size() > 2 * query_.limit + slice) keep_first();
  if (!scanned_) return;
  next_ = 0;
  list_.lines.reserve(candidates_.size());
}

void StreamWalk::add_candidate(Stream& stream) {
  const StreamSettings& settings = stream.settings();
  if (!query_.pipeline.empty() && settings.pipeline != query_.pipeline) return;
  const std::string_view tenant = tenant_in(settings.name);
  const bool is_default = query_.tenant == default_tenant && tenant.empty();
  if (!query_.tenant.empty() && tenant != query_.tenant && !is_default) return;
  ++list_.total;
  Candidate candidate{.id = settings.id, .opened = settings.opened};
  if (query_.order == StreamOrder::held) candidate.held = stream.reclaimable();
  if (query_.order == StreamOrder::name) candidate.name = settings.name;
  candidates_.push_back(std::move(candidate));
}

void StreamWalk::keep_first() {
  if (candidates_.size() <= query_.limit) return;
  std::ranges::nth_element(candidates_, candidates_.begin() + query_.limit,
                           [this](const auto& a, const auto& b) { return before(a, b); });
  candidates_.erase(candidates_.begin() + query_.limit, candidates_.end());
}

void StreamWalk::describe(const StreamTable& table) {
  const std::size_t end = std::min(candidates_.size(), next_ + slice);
  for (; next_ < end; ++next_)
    if (Stream* stream = table.find(candidates_[next_].id))  // it may have ended meanwhile
      list_.lines.push_back(line_of(*stream, now_));
}

}  // namespace millrace
