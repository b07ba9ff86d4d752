// SPDX-License-Identifier: Apache-2.0
#include "bench/row_check.h"

#include <utility>

namespace millrace::bench {

RowCheck::RowCheck(const std::string& url, const Packets& packets, std::uint32_t streams)
    : packets_(packets), worker_(url, {.name = "bench"}) {
  seen_.expected.resize(streams);
  seen_.rows.reserve(1 << 20);  // no growing while it measures
  seen_.batches.reserve(1 << 20);
  thread_ = std::jthread([this] { run(); });
}

RowCheck::Seen RowCheck::finish() {
  thread_.join();
  if (failure_) std::rethrow_exception(failure_);
  return std::move(seen_);
}

void RowCheck::run() {
  try {
    while (auto batch = worker_.next()) {
      check(*batch);
      worker_.done(*batch);
    }
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void RowCheck::check(const WorkerBatch& batch) {
  SeenBatch seen{.trigger = batch.trigger(),
                 .rows = static_cast<std::uint32_t>(batch.framed().size()),
                 .due = {},
                 .sent = Time::max(),
                 .closed = batch.closed()};
  for (std::uint32_t i = 0; i < seen.rows; ++i) {
    const auto head = packets_.read(batch.row(i));
    if (!head || head->stream >= seen_.expected.size()) {
      ++seen_.damaged;
      continue;
    }
    check(*head, batch.taken());
    if (head->sent >= seen.sent) continue;
    seen.sent = head->sent;
    seen.due = head->due;
  }
  if (seen.sent != Time::max()) seen_.batches.push_back(seen);
}

void RowCheck::check(const PacketHead& head, Time taken) {
  seen_.rows.push_back({head.due, head.sent, taken});
  std::uint32_t& expected = seen_.expected[head.stream];
  if (head.number < expected) {
    ++seen_.repeated;
    return;
  }
  seen_.skipped += head.number - expected;
  expected = head.number + 1;
}

}  // namespace millrace::bench
