// SPDX-License-Identifier: Apache-2.0
#include "streams/resume/client_shelf.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace millrace {
namespace {

using Kept = ClientShelf::Kept;

// With the header of the allocator, 2 KiB: the messages of a second, if results come every 100 ms.
constexpr std::size_t block_size = 2031;
constexpr std::size_t kept_capacity = 16;  // blocks whose places are kept when none is left

bool is_result(const Kept& kept) {
  return std::holds_alternative<ClientShelf::Result>(kept) ||
         std::holds_alternative<ClientShelf::Message>(kept);
}

const Explanation* explanation_of(const Kept& kept) {
  const auto* result = std::get_if<ClientShelf::Result>(&kept);
  return result ? result->head.explanation : nullptr;
}

struct Giver {
  const Answer& text;
  ClientOutput& client;

  void operator()(const ClientShelf::Result& one) const { client.result(one.head, text); }
  void operator()(const ClientShelf::Message& one) const { client.message(one.head, text); }
  void operator()(const ClientShelf::Flushed& one) const { client.flushed(one.mark, one.seq); }
  void operator()(const ClientShelf::Rejected& one) const {
    client.rejected(one.code, text.data, one.frames);
  }
  void operator()(const ClientShelf::Error& one) const { client.error(one.code, text.data); }
  void operator()(const ClientShelf::Closed& one) const {
    client.closed(one.frames, one.chunks, one.drained);
  }
};

template <class Value>
void append(std::string& block, const Value& value) {
  block.append(reinterpret_cast<const char*>(&value), sizeof value);
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
  if (blocks_.empty() || blocks_.back().capacity() - blocks_.back().size() < size) {
    std::string block;
    block.reserve(std::max(size, block_size));
    if (empty()) blocks_.clear();  // the one block is too short
    blocks_.push_back(std::move(block));
  }
  std::string& block = blocks_.back();
  if (has_given_all()) {
    given_block_ = blocks_.size() - 1;
    given_at_ = block.size();
  }
  if (block.empty()) bytes_ += block.capacity();
  append(block, Head{size, text.kind, text.endpoint, is_result(message)});
  append(block, message);
  block.append(text.data);
  if (explanation) append(block, *explanation);
  ++count_;
  if (is_result(message)) ++results_;
}

void ClientShelf::give(std::uint64_t n, const Kept& message, const Answer& text,
                       ClientOutput& client) {
  MessageNumber number{.n = n};
  if (const auto* result = std::get_if<Result>(&message)) number.point = result->point;
  client.number(number);
  std::visit(Giver{text, client}, message);
}

void ClientShelf::give_next(ClientOutput& client) {
  assert(!has_given_all());
  const char* at = &blocks_[given_block_][given_at_];
  const Head head = value_at<Head>(at);
  auto message = value_at<Kept>(at + sizeof head);
  const char* end = at + head.size;
  Explanation explanation;
  if (explanation_of(message)) {
    end -= sizeof explanation;
    explanation = value_at<Explanation>(end);
    std::get<Result>(message).head.explanation = &explanation;
  }
  const Answer text{head.kind, std::string(at + overhead, end), head.endpoint};
  give(given_, message, text, client);
  seek_next(head.size);
}

void ClientShelf::seek(std::uint64_t n) {
  assert(n >= first_ && n <= next());
  given_ = first_;
  given_block_ = 0;
  given_at_ = begin_;
  while (given_ < n) seek_next(value_at<Head>(&blocks_[given_block_][given_at_]).size);
}

void ClientShelf::seek_next(std::size_t bytes) {
  ++given_;
  given_at_ += bytes;
  if (given_at_ < blocks_[given_block_].size()) return;
  ++given_block_;
  given_at_ = 0;
}

void ClientShelf::acknowledge(std::uint64_t n) {
  assert(n <= next());
  for (; first_ < n; ++first_, --count_) {
    std::string& block = blocks_.front();
    const Head head = value_at<Head>(&block[begin_]);
    if (head.is_result) --results_;
    begin_ += head.size;
    if (begin_ < block.size()) continue;
    begin_ = 0;
    bytes_ -= block.capacity();
    if (blocks_.size() > 1 || block.capacity() > block_size) {
      blocks_.pop_front();
      if (given_block_ > 0) --given_block_;
    } else {
      block.clear();  // the next message reuses it
    }
  }
  if (given_ <= first_) {
    given_ = first_;
    given_block_ = 0;
    given_at_ = begin_;
  }
  if (empty() && blocks_.capacity() > kept_capacity) blocks_ = {};
}

}  // namespace millrace
