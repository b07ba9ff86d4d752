// SPDX-License-Identifier: Apache-2.0
#include "training/filling/filling_job.h"

#include <algorithm>

#include "base/time.h"
#include "base/trigger.h"

namespace millrace::training {

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
  const std::uint64_t stream = planned.framed[failure.row].stream;
  return {.error = failure.error,
          .stream = stream,
          .name = catalog.name(stream),
          .epoch = planned.epoch,
          .step = planned.step};
}

void FillingJob::end_rows() {
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

}  // namespace millrace::training
