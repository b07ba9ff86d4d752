// SPDX-License-Identifier: Apache-2.0
#include "transport/net/tls/tls_session.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <new>

namespace millrace {
namespace {

using boost::system::error_code;

// OpenSSL's own would end the process with SIGPIPE if the peer has closed the connection.
int send_quietly(BIO* bio, const char* bytes, int size) {
  int socket = -1;
  BIO_get_fd(bio, &socket);
  BIO_clear_retry_flags(bio);
  const auto sent = ::send(socket, bytes, static_cast<std::size_t>(size), MSG_NOSIGNAL);
  if (sent < 0 && BIO_sock_should_retry(-1)) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

BIO_METHOD* make_quiet_socket() {
  const BIO_METHOD* plain = BIO_s_socket();
  BIO_METHOD* quiet = BIO_meth_new(BIO_TYPE_SOCKET, "socket without SIGPIPE");
  if (!quiet) throw std::bad_alloc();
  BIO_meth_set_write(quiet, &send_quietly);
  BIO_meth_set_read(quiet, BIO_meth_get_read(plain));
  BIO_meth_set_ctrl(quiet, BIO_meth_get_ctrl(plain));
  BIO_meth_set_create(quiet, BIO_meth_get_create(plain));
  BIO_meth_set_destroy(quiet, BIO_meth_get_destroy(plain));
  return quiet;
}

int size_of(std::size_t size) {
  return static_cast<int>(std::min<std::size_t>(size, std::numeric_limits<int>::max()));
}

// Names the host for the server (SNI), and for the check of its certificate.
bool set_host(SSL* session, const std::string& host) {
  X509_VERIFY_PARAM* checks = SSL_get0_param(session);
  if (X509_VERIFY_PARAM_set1_ip_asc(checks, host.c_str()) == 1) return true;
  X509_VERIFY_PARAM_set_hostflags(
      checks, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  return SSL_set1_host(session, host.c_str()) == 1 &&
         SSL_set_tlsext_host_name(session, host.c_str()) == 1;
}

std::string refused_certificate(const char* peer, long why) {
  std::string text = "the " + std::string(peer) + "'s certificate was refused: ";
  text += X509_verify_cert_error_string(why);
  const bool unknown = why == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY ||
                       why == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN ||
                       why == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT ||
                       why == X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE;
  return unknown ? text + "; its authority is not among the trusted ones" : text;
}

// Advice for the first steps of a handshake; empty without one.
std::string advice_for_client(int code) {
  if (code == SSL_R_UNEXPECTED_EOF_WHILE_READING)
    return "the server closed the connection during the TLS handshake; for a port without TLS, use "
           "ws://";
  if (code == SSL_R_WRONG_VERSION_NUMBER || code == SSL_R_HTTP_REQUEST)
    return "the server does not speak TLS; use ws://";
  return {};
}

}  // namespace

void TlsSession::Free::operator()(ssl_st* session) const { SSL_free(session); }

TlsSession::TlsSession(const TlsContext& context, int socket, Blank)
    : session_(SSL_new(context.get())) {
  static BIO_METHOD* const quiet_socket = make_quiet_socket();
  BIO* bio = session_ ? BIO_new(quiet_socket) : nullptr;
  if (!bio) throw std::bad_alloc();
  BIO_set_fd(bio, socket, BIO_NOCLOSE);
  SSL_set_bio(session_.get(), bio, bio);
}

TlsSession::TlsSession(const TlsContext& context, int socket, const std::string& host)
    : TlsSession(context, socket, Blank()) {
  SSL_set_connect_state(session_.get());
  if (!set_host(session_.get(), host))
    throw std::runtime_error("\"" + host + "\" cannot be the host of a certificate");
}

TlsSession::TlsSession(const TlsContext& context, int socket)
    : TlsSession(context, socket, Blank()) {
  SSL_set_accept_state(session_.get());
}

error_code TlsSession::handshake() {
  read_awaits_ = Socket::wait_read;
  begin();
  return outcome_of(SSL_do_handshake(session_.get()), read_awaits_);
}

std::size_t TlsSession::read(MutableBytes into, error_code& error) {
  read_awaits_ = Socket::wait_read;
  begin();
  const int count = SSL_read(session_.get(), into.data(), size_of(into.size()));
  error = outcome_of(count, read_awaits_);
  return count > 0 ? static_cast<std::size_t>(count) : 0;
}

// OpenSSL writes one record of at most 16 KiB at a time.
std::size_t TlsSession::write(Bytes bytes, error_code& error) {
  write_awaits_ = Socket::wait_write;
  error = {};
  std::size_t written = 0;
  while (written < bytes.size()) {
    const Bytes rest = bytes.subspan(written);
    begin();
    const int count = SSL_write(session_.get(), rest.data(), size_of(rest.size()));
    if (count <= 0) {
      error = outcome_of(count, write_awaits_);
      break;
    }
    written += static_cast<std::size_t>(count);
  }
  if (written > 0) error = {};
  return written;
}

std::size_t TlsSession::buffered() const {
  return static_cast<std::size_t>(SSL_pending(session_.get()));
}

void TlsSession::close() {
  begin();
  if (failure_.empty() && open_) SSL_shutdown(session_.get());
}

void TlsSession::forget_socket() { BIO_set_fd(SSL_get_wbio(session_.get()), -1, BIO_NOCLOSE); }

// OpenSSL's queue of errors is that of the thread. After an error, a session counts as not open.
void TlsSession::begin() {
  ERR_clear_error();
  if (!open_) open_ = SSL_is_init_finished(session_.get()) == 1;
}

error_code TlsSession::outcome_of(int returned, Socket::wait_type& awaits) {
  if (returned > 0) return {};
  const int system = errno;
  switch (SSL_get_error(session_.get(), returned)) {
    case SSL_ERROR_WANT_READ: awaits = Socket::wait_read; return net::error::would_block;
    case SSL_ERROR_WANT_WRITE: awaits = Socket::wait_write; return net::error::would_block;
    case SSL_ERROR_ZERO_RETURN: return net::error::eof;
    case SSL_ERROR_SYSCALL:
      if (failure_.empty()) failure_ = std::strerror(system == 0 ? ECONNABORTED : system);
      return {system == 0 ? ECONNABORTED : system, boost::system::system_category()};
    default:
      if (SSL_is_server(session_.get()) == 1 && BIO_number_read(SSL_get_rbio(session_.get())) == 0)
        return net::error::eof;
      is_plain_http_ = !open_ && ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST;
      if (failure_.empty()) failure_ = reason(ERR_peek_error());
      return net::error::connection_aborted;
  }
}

std::string TlsSession::reason(unsigned long error) const {
  const int code = ERR_GET_REASON(error);
  const bool is_server = SSL_is_server(session_.get()) == 1;
  if (code == SSL_R_CERTIFICATE_VERIFY_FAILED)
    return refused_certificate(is_server ? "client" : "server",
                               SSL_get_verify_result(session_.get()));
  if (open_ && code == SSL_R_UNEXPECTED_EOF_WHILE_READING)
    return "the connection ended without the end of TLS: it was lost";
  std::string why = is_server || open_ ? "" : advice_for_client(code);
  if (!why.empty()) return why;
  const char* text = ERR_reason_error_string(error);
  return std::string("TLS failed: ") + (text ? text : "unknown error");
}

}  // namespace millrace
