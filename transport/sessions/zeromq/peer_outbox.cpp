// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/zeromq/peer_outbox.h"

#include <cstring>
#include <span>
#include <utility>

namespace millrace {

PeerOutbox::~PeerOutbox() { gauge_.add(-static_cast<std::int64_t>(unsent_)); }

std::size_t PeerOutbox::append(Bytes message, PeerStream* stream, bool is_result) {
  if (empty()) wire_.wake();
  waiting_.labels.push_back({stream, message.size(), is_result});
  try {
    waiting_.bytes.append(text_in(message));
  } catch (...) {
    waiting_.labels.pop_back();
    throw;
  }
  unsent_ += message.size();
  if (!stream) unsent_without_stream_ += message.size();
  gauge_.add(static_cast<std::int64_t>(message.size()));
  return message.size();
}

std::optional<PeerOutbox::Label> PeerOutbox::send_next() {
  if (next_ == sending_.labels.size()) start_next_batch();
  if (next_ == sending_.labels.size()) return std::nullopt;
  const Label label = sending_.labels[next_];
  const Bytes bytes = std::as_bytes(std::span(sending_.bytes)).subspan(at_, label.bytes);
  if (wire_.send(bytes) != PeerWire::Sent::accepted) return std::nullopt;
  ++next_;
  at_ += label.bytes;
  unsent_ -= label.bytes;
  if (!label.stream) unsent_without_stream_ -= label.bytes;
  gauge_.add(-static_cast<std::int64_t>(label.bytes));
  return label;
}

void PeerOutbox::drop(const PeerStream& stream) noexcept {
  const std::size_t dropped = drop(stream, sending_, next_, at_) + drop(stream, waiting_, 0, 0);
  unsent_ -= dropped;
  gauge_.add(-static_cast<std::int64_t>(dropped));
}

// Drops messages of `stream` from index `first` on, which begins at byte `at`. Returns the number
// of bytes dropped.
std::size_t PeerOutbox::drop(const PeerStream& stream, Batch& batch, std::size_t first,
                             std::size_t at) {
  std::size_t kept = first, end = at;
  for (std::size_t i = first; i < batch.labels.size(); ++i) {
    const Label label = batch.labels[i];
    if (label.stream != &stream) {
      std::memmove(batch.bytes.data() + end, batch.bytes.data() + at, label.bytes);
      end += label.bytes;
      batch.labels[kept++] = label;
    }
    at += label.bytes;
  }
  batch.labels.resize(kept);
  batch.bytes.resize(end);
  batch.bytes.shrink_to_fit();
  return at - end;
}

// Neither batch grows beyond the unsent messages, even if the queue is never empty.
void PeerOutbox::start_next_batch() {
  next_ = at_ = 0;
  sending_.labels.clear();
  if (sending_.bytes.capacity() > kept_) std::string().swap(sending_.bytes);
  sending_.bytes.clear();
  std::swap(sending_, waiting_);
}

}  // namespace millrace
