// SPDX-License-Identifier: Apache-2.0
#include "transport/zeromq/message.h"

#include <zmq.h>

#include <cstring>
#include <new>

namespace millrace {

namespace {

zmq_msg_t* part(void* message) { return static_cast<zmq_msg_t*>(message); }

}  // namespace

static_assert(sizeof(zmq_msg_t) == 64 && alignof(zmq_msg_t) <= alignof(void*));

ZeromqMessage::ZeromqMessage() { zmq_msg_init(part(handle())); }

ZeromqMessage::~ZeromqMessage() { zmq_msg_close(part(handle())); }

ZeromqMessage::ZeromqMessage(ZeromqMessage&& other) noexcept : ZeromqMessage() {
  zmq_msg_move(part(handle()), part(other.handle()));
}

ZeromqMessage& ZeromqMessage::operator=(ZeromqMessage&& other) noexcept {
  if (this != &other) zmq_msg_move(part(handle()), part(other.handle()));
  return *this;
}

ZeromqMessage ZeromqMessage::copy_of(Bytes bytes) {
  ZeromqMessage copy;
  zmq_msg_t* const message = part(copy.handle());
  if (zmq_msg_init_size(message, bytes.size()) != 0) {
    zmq_msg_init(message);
    throw std::bad_alloc();
  }
  if (!bytes.empty()) std::memcpy(zmq_msg_data(message), bytes.data(), bytes.size());
  return copy;
}

Bytes ZeromqMessage::bytes() const {
  zmq_msg_t* const message = part(message_.data());
  return {static_cast<const std::byte*>(zmq_msg_data(message)), zmq_msg_size(message)};
}

}  // namespace millrace
