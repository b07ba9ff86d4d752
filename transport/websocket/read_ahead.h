// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "transport/net/net.h"

namespace millrace {

class ReadAhead;

// The one piece of memory that all WebSockets of an io_context read into, each in its turn.
class ReadBuffer final : public net::execution_context::service {
 public:
  using key_type = ReadBuffer;
  static net::execution_context::id id;
  static constexpr std::size_t size = 80 * 1024;  // above a message of the usual greatest length

  explicit ReadBuffer(net::execution_context& context) : service(context) {}

  // So many bytes at most are read at once, and may so stay with a socket that nobody reads on; 4
  // KiB are always. Without a word as many as there is room for.
  void allow(std::size_t most);

 private:
  friend ReadAhead;
  void shutdown() override {}

  std::unique_ptr<std::byte[]> bytes_ = std::make_unique_for_overwrite<std::byte[]>(size);
  ReadAhead* user_ = nullptr;  // whose unread bytes lie in it
  std::size_t most_ = size;    // at once
};

// The bytes that were read from one socket and not taken yet: in the thread's buffer until another
// socket wants that, then in memory of their own, so that a socket at rest has next to none.
// Confined to one thread.
class ReadAhead {
 public:
  // `rest` was read before.
  ReadAhead(net::io_context& context, std::string rest);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Reads the bytes that are there without waiting, in one system call. Requires: what is unread is
  // empty, or an incomplete frame that fits into the buffer.
  boost::system::error_code fill(Socket& socket);

  // The unread bytes. The caller removes those that it takes from the front; they are valid until
  // the next call here, or until another socket of the thread is read.
  MutableBytes& unread();
  bool empty() const { return unread_.empty(); }
  // Before a long wait: keeps no more memory than the unread bytes need, or a little.
  void shrink();
  std::size_t memory() const { return own_.capacity(); }  // of its own

 private:
  void spoil();
  void leave_buffer();
  boost::system::error_code fill_own(Socket& socket);

  ReadBuffer& buffer_;
  std::string own_;
  MutableBytes unread_;  // in the thread's buffer or in own_
  MutableBytes seen_;    // the same with the bytes that were taken since the last call
};

}  // namespace millrace
