// SPDX-License-Identifier: Apache-2.0
#include "transport/net/tls/tls_context.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <new>
#include <stdexcept>

namespace millrace {
namespace {

void load_authorities(SSL_CTX* context, const std::string& ca) {
  errno = 0;
  if (!std::ifstream(ca)) throw std::invalid_argument(ca + ": " + std::strerror(errno));
  if (SSL_CTX_load_verify_file(context, ca.c_str()) == 1) return;
  ERR_clear_error();
  throw std::invalid_argument(ca + ": must have certificates in the format PEM");
}

}  // namespace

TlsContext::TlsContext(const std::string& ca)
    : context_(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free) {
  SSL_CTX* context = context_.get();
  if (!context) throw std::bad_alloc();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  // A write that could not finish is repeated with the same bytes, which may have moved, and with
  // others after them. Idle sessions hold no buffers: 34 KB less for each.
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  // A call of read() handles one record, so that a peer cannot keep it busy without sending data.
  SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
  constexpr unsigned char http[] = "\x08http/1.1";
  SSL_CTX_set_alpn_protos(context, http, sizeof http - 1);
  if (ca.empty())
    SSL_CTX_set_default_verify_paths(context);
  else
    load_authorities(context, ca);
}

}  // namespace millrace
