// SPDX-License-Identifier: Apache-2.0
#include "recording/writer/page.h"

#include <new>

namespace millrace::recording {

std::optional<std::size_t> Page::room() const {
  const std::size_t begin = aligned(used_) + head;
  if (begin > memory_.size()) return std::nullopt;
  return memory_.size() - begin;
}

std::byte* Page::add(const PageRecord& record) {
  last_ = aligned(used_);
  new (memory_.data() + last_) PageRecord(record);
  used_ = last_ + head + record.bytes;
  return memory_.data() + last_ + head;
}

std::byte* Page::grow(std::size_t bytes) {
  std::byte* const more = memory_.data() + used_;
  head_at(last_)->bytes += static_cast<std::uint32_t>(bytes);
  used_ += bytes;
  return more;
}

void Page::clear() {
  used_ = last_ = 0;
  opened.clear();
  begun.reset();
}

}  // namespace millrace::recording
