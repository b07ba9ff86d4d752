// SPDX-License-Identifier: Apache-2.0
#include "training/filling/filling_job.h"

#include <algorithm>
#include <cstring>

#include "base/time.h"
#include "base/trigger.h"
#include "workers/feed/row_entry.h"

namespace millrace::training {

// Without slots, each row opens its stream, and several rows can be of one stream.
void FillingJob::list_opened() {
  using worker_protocol::OpenedStream;
  auto& opened = message.opened;
  opened.clear();
  for (const PlannedRow& row : planned.framed)
    if (row.opens)
      opened.push_back(
          {.stream = StreamId(row.stream), .slot = row.slot, .name = {}, .options = {}});
  if (slots_ > 0) return;
  std::ranges::stable_sort(opened, {}, &OpenedStream::stream);
  const auto same = [](const OpenedStream& a, const OpenedStream& b) {
    return a.stream == b.stream;
  };
  opened.erase(std::unique(opened.begin(), opened.end(), same), opened.end());
}

const FillingJob::Failure* FillingJob::first_failure() const {
  const Failure* first = nullptr;
  for (const auto& failure : failures)
    if (failure && (!first || failure->row < first->row)) first = &*failure;
  return first;
}

DataError FillingJob::error(const Catalog& catalog) const {
  if (thrown) std::rethrow_exception(thrown);
  const Failure& failure = *first_failure();
  if (failure.thrown) std::rethrow_exception(failure.thrown);
  return error_of(failure, catalog);
}

DataError FillingJob::error_of(const Failure& failure, const Catalog& catalog) const {
  const PlannedRow& row = planned.framed[failure.row];
  return {.error = failure.error,
          .stream = row.stream,
          .name = catalog.name(row.stream),
          .epoch = planned.epoch,
          .step = planned.step,
          .copy = row.copy,
          .frame = row.frame,
          .good = failure.good};
}

void FillingJob::end_rows(const Catalog& catalog) {
  failed.clear();
  message.failed.clear();
  for (const LeftOut& part : left_out)
    for (const Failure& failure : part.failures) failed.push_back(error_of(failure, catalog));
  for (const DataError& error : failed)
    message.failed += (message.failed.empty() ? "[" : ",") + to_json(error);
  if (!failed.empty()) message.failed += ']';
  if (std::ranges::any_of(
          left_out, [](const LeftOut& part) { return part.framed.size() + part.marks.size() > 0; }))
    compact();
  shape = writer.finish(static_cast<std::uint32_t>(planned.framed.size()));
  for (std::size_t i = 0; i < companions.sizes.size(); ++i) {
    const std::size_t all = companions.sizes[i];
    const std::size_t framed = planned.framed.size() * (all / planned.rows);
    std::ranges::fill(writer.companions().subspan(companions.offsets[i] + framed, all - framed),
                      std::byte{});
  }
  message.closed = message.copied = Clock::now();
  message.trigger = static_cast<std::uint8_t>(Trigger::full);
}

// The other rows move up, so that padding rows follow them. Fewer marker rows give the slab another
// layout.
void FillingJob::compact() {
  std::vector<bool> framed(planned.framed.size(), true), marks(planned.marks.size(), true);
  for (const LeftOut& part : left_out) {
    for (const std::size_t row : part.framed) framed[row] = false;
    for (const std::size_t mark : part.marks) marks[mark] = false;
  }
  const std::vector<std::byte> entries(writer.companions().begin(), writer.companions().end());
  std::size_t kept = 0;
  for (std::size_t at = 0; at < marks.size(); ++at)
    if (marks[at]) {
      planned.marks[kept] = planned.marks[at];
      message.marks[kept++] = message.marks[at];
    }
  planned.marks.resize(kept);
  message.marks.resize(kept);
  writer.relayout(static_cast<std::uint32_t>(kept));
  for (std::uint32_t at = 0; at < kept; ++at)
    writer.put_mark(at, control_of(planned.marks[at].slot, planned.marks[at].row));
  std::uint32_t to = 0;
  for (std::uint32_t at = 0; at < framed.size(); ++at) {
    if (!framed[at]) continue;
    writer.move(at, to);
    for (std::size_t i = 0; i < companions.sizes.size(); ++i) {
      const std::size_t bytes = companions.sizes[i] / planned.rows, begin = companions.offsets[i];
      std::memcpy(writer.companions().data() + begin + to * bytes,
                  entries.data() + begin + at * bytes, bytes);
    }
    PlannedRow& row = planned.framed[to] = planned.framed[at];
    if (slots_ == 0) row.slot = to;
    message.framed[to] = entry_of(StreamId(row.stream), row.slot, row.row);
    writer.control(to++, control_of(row.slot, row.row));
  }
  planned.framed.resize(to);
  message.framed.resize(to);
  list_opened();
}

}  // namespace millrace::training
