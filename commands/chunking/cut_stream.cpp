// SPDX-License-Identifier: Apache-2.0
#include "commands/chunking/cut_stream.h"

#include <algorithm>
#include <utility>

namespace millrace {

CutStream::CutStream(Rule rule, OnEvent on_event, OnRow on_row)
    : rule_(std::move(rule)),
      on_event_(std::move(on_event)),
      on_row_(std::move(on_row)),
      sources_({.stream = rule_.name,
                .frames = rule_.frames,
                .chunk = rule_.chunk,
                .requested_size = {},
                .max_wait = {},
                .endpoint = rule_.endpoint},
               stats_, chosen_size_),
      chunker_(rule_.chunk.chunker_spec()) {
  chunker_.add({.kind = Event::Kind::open});
}

void CutStream::add(std::uint64_t count, Bytes values) {
  while (count > 0 && !stopped_) {
    feed_decisions();
    if (stopped_) return;
    const std::uint64_t part =
        std::min({count, chunker_.frames_until_next(), sources_.frames_until_next()});
    const std::size_t bytes =
        values.empty() ? 0 : static_cast<std::size_t>(part) * rule_.frames.bytes();
    feed({.kind = Event::Kind::frames, .count = part}, values.first(bytes));
    values = values.subspan(bytes);
    count -= part;
  }
  if (!stopped_) feed_endpoints();
}

void CutStream::end() {
  feed_decisions();
  if (!stopped_) feed({.kind = Event::Kind::end});
}

// The events that must enter the chunker before the stream's next event.
void CutStream::feed_decisions() {
  feed_endpoints();
  if (stopped_) return;
  if (const auto size = sources_.size(Duration{})) feed(*size);
}

void CutStream::feed_endpoints() {
  while (!stopped_) {
    const auto endpoint = sources_.endpoint();
    if (!endpoint) return;
    feed(*endpoint);
  }
}

void CutStream::feed(const Event& event, Bytes values) {
  chunker_.add(event);
  sources_.added(event, {values, Bytes()});
  on_event_(event);
  while (const auto row = chunker_.next()) {
    sources_.cut(*row);
    if (!on_row_(*row)) {
      stopped_ = true;
      return;
    }
  }
}

}  // namespace millrace
