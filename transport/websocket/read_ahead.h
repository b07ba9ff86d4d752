// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "transport/net/net.h"
#include "transport/net/tls/stream_socket.h"

namespace millrace {

class ReadAhead;

// The read buffer of an io_context. All its WebSockets share it; one uses it at a time. Confined to
// the thread of the io_context.
class ReadBuffer final : public net::execution_context::service {
 public:
  using key_type = ReadBuffer;
  static net::execution_context::id id;
  static constexpr std::size_t size = 80 * 1024;  // longer than a message of the default limit

  explicit ReadBuffer(net::execution_context& context) : service(context) {}

  // Sets the most bytes to read at once, at least 4 KiB; the default is the whole buffer. A socket
  // that is not read further may keep that many unread bytes. The rest of a message that has begun
  // is always read, as far as it fits.
  void allow(std::size_t most);

 private:
  friend ReadAhead;
  void shutdown() override {}

  std::unique_ptr<std::byte[]> bytes_ = std::make_unique_for_overwrite<std::byte[]>(size);
  ReadAhead* user_ = nullptr;    // its unread bytes are in bytes_; may be null
  std::size_t max_read_ = size;  // bytes to read at once
};

// The unread bytes of one socket. They are in the thread's buffer until another socket uses it, and
// are then copied into memory of this object. An idle socket therefore holds almost no memory.
// Confined to one thread.
class ReadAhead {
 public:
  // `rest` are bytes that were already read from the socket.
  ReadAhead(net::io_context& context, std::string rest);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Reads available bytes without waiting, in one call. Requires: the unread bytes are
  // empty, or an incomplete frame that fits into the buffer.
  boost::system::error_code fill(StreamSocket& socket);

  // The unread bytes. The caller removes the bytes that it has read from the front. They are valid
  // until the next call here, or until another socket of the thread is read.
  MutableBytes& unread();
  bool empty() const { return unread_.empty(); }
  std::size_t size() const { return unread_.size(); }
  // Call it before a long wait: frees memory above 4 KiB if there are no unread bytes.
  void shrink();
  std::size_t memory() const { return own_.capacity(); }  // bytes outside the thread's buffer

 private:
  // In debug builds, overwrites bytes that are no longer valid, so that a late use is noticed.
  void poison();
  void move_to_own();
  boost::system::error_code fill_own(StreamSocket& socket);

  ReadBuffer& buffer_;
  std::string own_;
  MutableBytes unread_;  // in the thread's buffer or in own_
  MutableBytes seen_;    // unread_, and before it the bytes read since the last call
};

}  // namespace millrace
