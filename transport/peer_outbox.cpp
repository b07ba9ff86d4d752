// SPDX-License-Identifier: Apache-2.0
#include "transport/peer_outbox.h"

#include <span>
#include <utility>

namespace millrace {

PeerOutbox::~PeerOutbox() { gauge_.add(-static_cast<std::int64_t>(unsent_)); }

std::size_t PeerOutbox::append(Bytes message, PeerStream* stream, bool is_result) {
  if (empty()) wire_.wake();
  waiting_.bytes.append(reinterpret_cast<const char*>(message.data()), message.size());
  waiting_.labels.push_back({stream, message.size(), is_result});
  unsent_ += message.size();
  if (!stream) of_nobody_ += message.size();
  gauge_.add(static_cast<std::int64_t>(message.size()));
  return message.size();
}

std::optional<PeerOutbox::Label> PeerOutbox::send_next() {
  if (next_ == sending_.labels.size()) take_waiting();
  if (next_ == sending_.labels.size()) return std::nullopt;
  const Label label = sending_.labels[next_];
  const Bytes bytes = std::as_bytes(std::span(sending_.bytes)).subspan(at_, label.bytes);
  if (wire_.send(bytes) != PeerWire::Sent::taken) return std::nullopt;
  ++next_;
  at_ += label.bytes;
  unsent_ -= label.bytes;
  if (!label.stream) of_nobody_ -= label.bytes;
  gauge_.add(-static_cast<std::int64_t>(label.bytes));
  return label;
}

// A peer that is always a little behind makes neither batch grow beyond what waits.
void PeerOutbox::take_waiting() {
  next_ = at_ = 0;
  sending_.labels.clear();
  if (sending_.bytes.capacity() > kept_) std::string().swap(sending_.bytes);
  sending_.bytes.clear();
  std::swap(sending_, waiting_);
}

}  // namespace millrace
