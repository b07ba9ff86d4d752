// SPDX-License-Identifier: Apache-2.0
#include "load/clients/due_cuts.h"

namespace millrace::load {

std::optional<DueCuts::ClientCut> DueCuts::take(Time now) {
  const std::uint32_t streams = schedule_.plan().streams;
  if (numbers_.empty()) {
    numbers_.resize(streams);
    for (std::uint32_t client = offset_; client < streams; client += stride_)
      add(client, schedule_.counted_from());
  }
  if (next() > now) return std::nullopt;
  const ClientCut due = cuts_.top();
  cuts_.pop();
  add(due.client, due.cut.at);
  return due;
}

void DueCuts::add(std::uint32_t client, Time previous) {
  if (const auto cut = schedule_.cut(client, numbers_[client]++, previous))
    cuts_.push({client, *cut});
}

}  // namespace millrace::load
