// SPDX-License-Identifier: Apache-2.0
#include "streams/resume/client_shelf.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <utility>

namespace millrace {
namespace {

using Kept = ClientShelf::Kept;

// With the header of the allocator, 2 KiB: the messages of a second, if results come every 100 ms.
constexpr std::size_t block_size = 2040;
constexpr std::size_t kept_capacity = 16;  // blocks whose places are kept when all are free

bool is_result(const Kept& kept) {
  return std::holds_alternative<ClientShelf::Result>(kept) ||
         std::holds_alternative<ClientShelf::Message>(kept);
}

const Explanation* explanation_of(const Kept& kept) {
  const auto* result = std::get_if<ClientShelf::Result>(&kept);
  return result ? result->head.explanation : nullptr;
}

template <class Value>
Value value_at(const char* at) {
  Value value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

void ClientShelf::add(const Kept& message, const Answer& text) {
  const Explanation* explanation = explanation_of(message);
  const std::size_t size = overhead + text.data.size() + (explanation ? sizeof *explanation : 0);
  assert(size <= std::numeric_limits<std::uint32_t>::max());
  if (newest_.capacity - newest_.used < size) add_block(size);
  if (newest_.used == 0) {
    newest_.first = next_;
    bytes_ += newest_.capacity;
  }
  if (has_given_all())
    given_ = {.n = next_, .block = static_cast<std::uint32_t>(full_.size()), .at = newest_.used};
  const Head head{static_cast<std::uint32_t>(size), text.kind, text.endpoint};
  char* to = &newest_.bytes[newest_.used];
  std::memcpy(to, &head, sizeof head);
  std::memcpy(to += sizeof head, &message, sizeof message);
  std::memcpy(to += sizeof message, text.data.data(), text.data.size());
  if (explanation) std::memcpy(to + text.data.size(), explanation, sizeof *explanation);
  newest_.used += head.size;
  ++next_;
}

void ClientShelf::add_block(std::size_t bytes) {
  Block block;
  block.capacity = static_cast<std::uint32_t>(std::max(bytes, block_size));
  block.bytes = std::make_unique_for_overwrite<char[]>(block.capacity);
  if (newest_.used > 0) full_.push_back(std::move(newest_));
  newest_ = std::move(block);
}

std::size_t ClientShelf::results() const {
  std::size_t results = 0;
  for (Place place = find(first_); place.n < next_; step(place))
    results += is_result(value_at<Kept>(at(place) + sizeof(Head))) ? 1 : 0;
  return results;
}

void ClientShelf::give_next(ClientOutput& client) {
  assert(!has_given_all());
  const char* from = at(given_);
  const Head head = value_at<Head>(from);
  auto message = value_at<Kept>(from + sizeof head);
  const char* end = from + head.size;
  Explanation explanation;
  if (explanation_of(message)) {
    end -= sizeof explanation;
    explanation = value_at<Explanation>(end);
    std::get<Result>(message).head.explanation = &explanation;
  }
  const Answer text{head.kind, std::string(from + overhead, end), head.endpoint};
  std::visit([&](const auto& one) { give(given_.n, one, text, client); }, message);
  step(given_);
}

void ClientShelf::seek(std::uint64_t n) { given_ = find(n); }

ClientShelf::Place ClientShelf::find(std::uint64_t n) const {
  assert(n >= first_ && n <= next_);
  Place place;
  while (place.block < full_.size() && block(place.block + 1).first <= n) ++place.block;
  place.n = block(place.block).first;
  while (place.n < n) step(place);
  return place;
}

void ClientShelf::step(Place& place) const {
  place.at += value_at<Head>(at(place)).size;
  ++place.n;
  if (place.at < block(place.block).used || place.n == next_) return;
  ++place.block;
  place.at = 0;
}

void ClientShelf::acknowledge(std::uint64_t n) {
  assert(n <= next_);
  first_ = std::max(first_, n);
  while (!full_.empty() && block(1).first <= first_) {
    bytes_ -= full_.pop_front().capacity;
    if (given_.block > 0) --given_.block;
  }
  if (empty()) {
    newest_.used = 0;  // the next message reuses it
    newest_.first = next_;
    if (newest_.capacity > block_size) newest_ = {.first = next_};
    if (full_.capacity() > kept_capacity) full_ = {};
    bytes_ = 0;
  }
  if (given_.n < first_) given_ = find(first_);
}

}  // namespace millrace
