// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "transport/net/net.h"
#include "transport/websocket/frame_head.h"

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

// What was read from one socket and not taken yet: in the thread's buffer until another socket
// wants that, then in memory of its own, so that a socket at rest has next to none. Knows where
// frames end.
// Confined to one thread.
class ReadAhead {
 public:
  // `rest` was read before.
  ReadAhead(net::io_context& context, std::string rest);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Reads what there is without waiting, in one system call. An error where what is unread fills
  // the buffer: no frame that next_message() could give does.
  boost::system::error_code fill(Socket& socket);

  // Takes a whole message of bytes in one frame, of at most `longest`, that stands next. Valid
  // until the next call here, or until another socket of the thread is read. Nothing: there is
  // none, or not all of it.
  std::optional<Bytes> next_message(std::size_t longest);
  // True if the next frame is not such a message, or was begun by read(): Beast has to parse it.
  bool other_next(std::size_t longest) const;
  // The head of the next frame; nullopt if it is incomplete, or read() is within a frame.
  std::optional<FrameHead> next_head() const;

  // Copies out of the frame that stands next, not beyond its end. 0: more must be read.
  std::size_t read(net::mutable_buffer to);
  // True if the last data frame that read() began was not the last one of its message.
  bool within_message() const { return within_message_; }

  bool empty() const { return unread_.empty(); }
  // Nobody will ask for a while: keeps no more memory than what is unread needs, or a little.
  void shrink();
  std::size_t memory() const { return own_.capacity(); }  // of its own

 private:
  bool takes(const FrameHead& head, std::size_t longest) const;
  void drop(std::size_t count) { unread_ = unread_.subspan(count); }
  void spoil();
  void leave_buffer();
  boost::system::error_code fill_own(Socket& socket);

  ReadBuffer& buffer_;
  std::string own_;
  MutableBytes unread_;     // in the thread's buffer or in own_
  MutableBytes given_;      // by next_message(), as long as it is valid
  std::uint64_t left_ = 0;  // of a frame that was begun by read()
  bool within_message_ = false;
};

}  // namespace millrace
