// SPDX-License-Identifier: Apache-2.0
#include "workers/hub/stream_returns.h"

#include <cstddef>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "schemas/json_text.h"

namespace millrace {

void StreamReturns::open(StreamIntro intro) {
  const StreamId id = intro.id;
  streams_.emplace(id, std::move(intro));
}

std::vector<worker_protocol::OpenedStream> StreamReturns::opened(
    std::span<const Lanes::Opened> rows) const {
  std::vector<worker_protocol::OpenedStream> opened;
  for (const auto& [row, room] : rows) {
    const StreamIntro& intro = streams_.at(row->stream);
    opened.push_back({row->stream, number(row->slot), intro.name, intro.options, room});
  }
  return opened;
}

void StreamReturns::apply(const StreamPosts& messages, StreamIntro& stream) {
  std::vector<std::string_view> options;
  for (const StreamPost& message : messages)
    if (message.set) options.push_back(message.text);
  if (!options.empty()) stream.options = merged_members(stream.options, options);
}

void StreamReturns::send(LaneEvents& events) {
  for (const auto& [stream, messages] : events.posts) apply(*messages, streams_.at(stream));
  events.posts.clear();
  // Neighbours for one mailbox are sent together: one lock for a batch of rows.
  const std::span<Returned> all(events.returned);
  ReturnBox* box = nullptr;
  std::size_t first = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const StreamIntro& stream = streams_.at(all[i].stream);
    if (const auto* done = std::get_if<RowDone>(&all[i].what)) count(*done, stream);
    if (stream.returns == box) continue;
    if (box) box->put_all(all.subspan(first, i - first));
    box = stream.returns;
    first = i;
  }
  if (box) box->put_all(all.subspan(first));
  for (StreamId id : events.finished) streams_.erase(id);
  events.returned.clear();
  events.finished.clear();
}

void StreamReturns::count(const RowDone& done, const StreamIntro& stream) {
  if (done.answer.kind == Answer::Kind::none) return;
  const bool failed = done.answer.kind == Answer::Kind::error;
  stats_.results[failed ? ResultStatus::error : ResultStatus::ok].add();
  if (!failed) return;
  WorkerEvent event = warning("row failed", "", done.answer.data);
  event.stream = stream.name;
  log_(event);
}

}  // namespace millrace
