// SPDX-License-Identifier: Apache-2.0
#include "streams/resume/client_shelf.h"

#include <cassert>

namespace millrace {
namespace {

using Kept = ClientShelf::Kept;

constexpr std::size_t kept_capacity = 64;  // messages whose memory is kept when none is left

struct DataBytes {
  std::size_t operator()(const ClientShelf::Result& one) const { return one.answer.data.size(); }
  std::size_t operator()(const ClientShelf::Message& one) const { return one.message.data.size(); }
  std::size_t operator()(const ClientShelf::Rejected& one) const { return one.message.size(); }
  std::size_t operator()(const ClientShelf::Error& one) const { return one.message.size(); }
  std::size_t operator()(const ClientShelf::Flushed&) const { return 0; }
  std::size_t operator()(const ClientShelf::Closed&) const { return 0; }
};

std::size_t bytes_of(const Kept& kept) { return sizeof(Kept) + std::visit(DataBytes(), kept); }

bool is_result(const Kept& kept) {
  return std::holds_alternative<ClientShelf::Result>(kept) ||
         std::holds_alternative<ClientShelf::Message>(kept);
}

struct Giver {
  ClientOutput& client;

  void operator()(const ClientShelf::Result& one) const { client.result(one.head, one.answer); }
  void operator()(const ClientShelf::Message& one) const { client.message(one.head, one.message); }
  void operator()(const ClientShelf::Flushed& one) const { client.flushed(one.mark, one.seq); }
  void operator()(const ClientShelf::Rejected& one) const {
    client.rejected(one.code, one.message, one.frames);
  }
  void operator()(const ClientShelf::Error& one) const { client.error(one.code, one.message); }
  void operator()(const ClientShelf::Closed& one) const {
    client.closed(one.frames, one.chunks, one.drained);
  }
};

}  // namespace

void ClientShelf::add(Kept message) {
  const std::size_t bytes = bytes_of(message);
  const bool counts = is_result(message);
  messages_.push_back(std::move(message));
  bytes_ += bytes;
  if (counts) ++results_;
}

void ClientShelf::give(std::uint64_t n, ClientOutput& client) const {
  assert(n >= first_ && n < next());
  const Kept& kept = messages_[n - first_];
  MessageNumber number{.n = n};
  if (const auto* result = std::get_if<Result>(&kept)) number.point = result->point;
  client.number(number);
  std::visit(Giver{client}, kept);
}

void ClientShelf::acknowledge(std::uint64_t n) {
  assert(n <= next());
  for (; first_ < n; ++first_) {
    const Kept kept = messages_.pop_front();
    bytes_ -= bytes_of(kept);
    if (is_result(kept)) --results_;
  }
  if (messages_.empty() && messages_.capacity() > kept_capacity) messages_ = {};
}

}  // namespace millrace
