// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/system/error_code.hpp>
#include <cstddef>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "transport/net/net.h"
#include "transport/net/tls/tls_context.h"

struct ssl_st;  // OpenSSL's SSL

namespace millrace {

// One end of TLS on a socket: plain bytes in, plain bytes out. The first calls of handshake(),
// write() or read() make the handshake: until it is complete, no byte is written or read. A client
// then has checked the server's certificate and its host name, and a server the client's
// certificate if its context has authorities.
//
// Never blocks. Confined to one thread at a time.
class TlsSession {
 public:
  // A client's end. `socket` is connected and non-blocking, or connecting; it must stay open as
  // long as this object. `host` is a name or an IP address.
  TlsSession(const TlsContext& context, int socket, const std::string& host);
  // A server's end.
  TlsSession(const TlsContext& context, int socket);

  // A step of the handshake, as far as the socket allows; no error once it is complete. Other
  // errors are those of read(). A server's end returns eof if the client has sent no byte.
  boost::system::error_code handshake();
  // Read and write as far as the socket allows, and return the number of bytes. With the error
  // would_block, none was moved: repeat the call when the socket is ready as read_awaits() or
  // write_awaits() says, a write with at least the same bytes. With eof, the peer has ended the
  // session properly. A connection that ends without that is lost, and has another error.
  std::size_t read(MutableBytes into, boost::system::error_code& error);
  std::size_t write(Bytes bytes, boost::system::error_code& error);
  Socket::wait_type read_awaits() const { return read_awaits_; }
  Socket::wait_type write_awaits() const { return write_awaits_; }

  // The number of bytes that are decrypted and not read. The socket is not readable because of
  // them.
  std::size_t buffered() const;

  // Sends the end of the data (close_notify), if the socket accepts it.
  void close();
  // The socket is closed: its number may be that of another one from now on, so nothing more is
  // read or written.
  void forget_socket();

  // Why the session has failed, for people; empty before that.
  const std::string& failure() const { return failure_; }
  // It has failed because the client speaks HTTP without TLS.
  bool is_plain_http() const { return is_plain_http_; }

 private:
  struct Free {
    void operator()(ssl_st* session) const;
  };

  struct Blank {};
  TlsSession(const TlsContext& context, int socket, Blank);
  void begin();
  boost::system::error_code outcome_of(int returned, Socket::wait_type& awaits);
  std::string reason(unsigned long error) const;

  std::unique_ptr<ssl_st, Free> session_;
  Socket::wait_type read_awaits_ = Socket::wait_read, write_awaits_ = Socket::wait_write;
  bool open_ = false;  // the handshake was complete before the last call
  bool is_plain_http_ = false;
  std::string failure_;
};

}  // namespace millrace
