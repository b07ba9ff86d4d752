// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "base/file_descriptor.h"
#include "transport/net/tls/tls_session.h"

namespace millrace {

// A connected TCP socket, plain or with TLS: bytes in, bytes out, without waiting. Without TLS, its
// functions are those of the socket. Confined to one thread.
class StreamSocket {
 public:
  // Not explicit: a socket is one without TLS. With `tls`, a session on this socket.
  StreamSocket(Socket socket, std::unique_ptr<TlsSession> tls = nullptr)
      : socket_(std::move(socket)), tls_(std::move(tls)) {
    boost::system::error_code closed;  // ignored: the first read fails too
    socket_.non_blocking(true, closed);
  }

  // The socket below TLS, to wait and for its options.
  Socket& tcp() { return socket_; }
  const std::unique_ptr<TlsSession>& tls() const { return tls_; }

  std::size_t read_some(net::mutable_buffer into, boost::system::error_code& error) {
    if (!tls_) return socket_.read_some(into, error);
    return tls_->read({static_cast<std::byte*>(into.data()), into.size()}, error);
  }

  std::size_t write_some(const std::array<net::const_buffer, 2>& bytes,
                         boost::system::error_code& error) {
    if (!tls_) return socket_.write_some(bytes, error);
    const auto& first = bytes[0].size() > 0 ? bytes[0] : bytes[1];
    return tls_->write({static_cast<const std::byte*>(first.data()), first.size()}, error);
  }

  // The event of tcp() to wait for after would_block.
  Socket::wait_type read_awaits() const { return tls_ ? tls_->read_awaits() : Socket::wait_read; }
  Socket::wait_type write_awaits() const {
    return tls_ ? tls_->write_awaits() : Socket::wait_write;
  }

  // Bytes that were taken from the socket and can be read: they do not make it readable.
  std::size_t buffered() const { return tls_ ? tls_->buffered() : 0; }

  // Gives the connection away: the descriptor, and the session if there is one, for a StreamSocket
  // of another thread.
  std::pair<FileDescriptor, std::unique_ptr<TlsSession>> release() {
    boost::system::error_code failed;
    FileDescriptor descriptor(socket_.release(failed));
    return {std::move(descriptor), std::move(tls_)};
  }

  void shutdown_send() {
    boost::system::error_code ignored;
    if (tls_) tls_->close();
    socket_.shutdown(Socket::shutdown_send, ignored);
  }

  void close() {
    boost::system::error_code ignored;
    if (tls_ && socket_.is_open()) tls_->close();
    socket_.close(ignored);
    if (tls_) tls_->forget_socket();
  }

 private:
  Socket socket_;
  std::unique_ptr<TlsSession> tls_;
};

// A server's end of a connection that was accepted. Null: without TLS. Throws std::bad_alloc.
inline StreamSocket server_end(Socket socket, const std::shared_ptr<const TlsContext>& context) {
  auto tls = context ? std::make_unique<TlsSession>(*context, socket.native_handle()) : nullptr;
  return StreamSocket(std::move(socket), std::move(tls));
}

}  // namespace millrace
