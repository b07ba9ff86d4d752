// SPDX-License-Identifier: Apache-2.0
#include "transport/net/tls/tls_context.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <ctime>
#include <new>
#include <stdexcept>
#include <vector>

#include "base/files/small_file.h"

namespace millrace {
namespace {

constexpr std::size_t largest_file = 1 << 20;

template <class T>
using Owned = std::unique_ptr<T, void (*)(T*)>;
using Certificate = Owned<X509>;

[[noreturn]] void refuse(const std::string& path, std::string_view why) {
  ERR_clear_error();
  throw std::invalid_argument(path + ": " + std::string(why));
}

std::string content_of(const std::string& path, bool is_secret) {
  const auto text =
      is_secret ? read_secret_file(path, largest_file) : read_small_file(path, largest_file);
  if (!text) refuse(path, text.error());
  return *text;
}

Owned<BIO> reader_of(const std::string& pem) {
  Owned<BIO> reader(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())),
                    [](BIO* bio) { BIO_free(bio); });
  if (!reader) throw std::bad_alloc();
  return reader;
}

// Not empty.
std::vector<Certificate> certificates_in(const std::string& path, const std::string& pem) {
  std::vector<Certificate> all;
  const auto reader = reader_of(pem);
  while (X509* one = PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr))
    all.emplace_back(one, &X509_free);
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  if (all.empty() || !at_end) refuse(path, "must have certificates in the format PEM");
  ERR_clear_error();
  return all;
}

void use_certificate(SSL_CTX* context, const std::string& path, const std::string& pem) {
  const auto chain = certificates_in(path, pem);
  if (SSL_CTX_use_certificate(context, chain.front().get()) != 1)
    refuse(path, "has a certificate that is too weak, or of an unknown kind");
  for (std::size_t i = 1; i < chain.size(); ++i)
    if (SSL_CTX_add1_chain_cert(context, chain[i].get()) != 1)
      refuse(path, "has a certificate behind the first one that is too weak");
}

void use_key(SSL_CTX* context, const TlsFiles& files, const std::string& pem) {
  const auto no_password = [](char*, int, int, void*) { return -1; };
  const Owned<EVP_PKEY> key(
      PEM_read_bio_PrivateKey(reader_of(pem).get(), nullptr, no_password, nullptr), &EVP_PKEY_free);
  if (!key) refuse(files.key, "must have a key in the format PEM, without a password");
  if (X509_check_private_key(SSL_CTX_get0_certificate(context), key.get()) != 1)
    refuse(files.key, "does not fit the certificate " + files.certificate);
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1) refuse(files.key, "cannot be used");
}

// Servers also send the names of the authorities, so that a client can choose its certificate.
void trust(SSL_CTX* context, const std::string& path, const std::string& pem) {
  for (const auto& authority : certificates_in(path, pem)) {
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority.get()) != 1 ||
        SSL_CTX_add_client_CA(context, authority.get()) != 1)
      refuse(path, "has a certificate that cannot be used");
  }
}

// The name of the protocol behind its length.
std::string listed(std::string_view protocol) {
  return static_cast<char>(protocol.size()) + std::string(protocol);
}

int index_of_protocol() {
  static const int index = SSL_CTX_get_ex_new_index(
      0, nullptr, nullptr, nullptr, [](void*, void* text, CRYPTO_EX_DATA*, int, long, void*) {
        delete static_cast<std::string*>(text);
      });
  return index;
}

int choose_protocol(SSL* session, const unsigned char** chosen, unsigned char* length,
                    const unsigned char* offered, unsigned size, void*) {
  const auto* ours = static_cast<const std::string*>(
      SSL_CTX_get_ex_data(SSL_get_SSL_CTX(session), index_of_protocol()));
  const auto* list = reinterpret_cast<const unsigned char*>(ours->data());
  unsigned char* common = nullptr;
  const int outcome = SSL_select_next_proto(&common, length, list,
                                            static_cast<unsigned>(ours->size()), offered, size);
  *chosen = common;
  return outcome == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

void speak(SSL_CTX* context, bool is_server, std::string_view protocol) {
  const std::string list = listed(protocol);
  if (!is_server) {
    SSL_CTX_set_alpn_protos(context, reinterpret_cast<const unsigned char*>(list.data()),
                            static_cast<unsigned>(list.size()));
    return;
  }
  SSL_CTX_set_ex_data(context, index_of_protocol(), new std::string(list));
  SSL_CTX_set_alpn_select_cb(context, &choose_protocol, nullptr);
}

void set_versions(SSL_CTX* context) {
  bool done = SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1;
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
  // Ciphers with forward secrecy and authenticated data. AES-128 first: it is as good, and faster.
  constexpr auto of_1_3 =
      "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
  constexpr auto of_1_2 = "ECDHE+AES128+AESGCM:ECDHE+AESGCM:ECDHE+CHACHA20";
  done = done && SSL_CTX_set_ciphersuites(context, of_1_3) == 1 &&
         SSL_CTX_set_cipher_list(context, of_1_2) == 1;
  if (!done) throw std::runtime_error("this OpenSSL lacks TLS 1.2, or its ciphers");
}

void set_modes(SSL_CTX* context) {
  // A write that could not finish is repeated with the same bytes, which may have moved, and with
  // others after them. Idle sessions hold no buffers: 34 KB less for each.
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  // A call of read() handles one record, so that a peer cannot keep it busy without sending data.
  SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
}

// A client that comes again shows a ticket, which only this context can read: the server keeps
// nothing. Behind a ticket, the certificate of a client would not be checked again.
void set_tickets(SSL_CTX* context, bool checks_peer) {
  if (checks_peer) SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
  constexpr unsigned char name[] = "millrace";
  SSL_CTX_set_session_id_context(context, name, sizeof name - 1);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, checks_peer ? 0 : 1);
}

std::string digest_of_files(const std::vector<std::string>& contents) {
  std::string all;
  for (const std::string& one : contents) all += std::to_string(one.size()) + ' ' + one;
  std::string digest(EVP_MAX_MD_SIZE, '\0');
  std::size_t size = 0;
  EVP_Q_digest(nullptr, "SHA256", nullptr, all.data(), all.size(),
               reinterpret_cast<unsigned char*>(digest.data()), &size);
  digest.resize(size);
  OPENSSL_cleanse(all.data(), all.size());  // it has the key
  return digest;
}

std::chrono::seconds end_of(const X509* certificate) {
  std::tm time{};
  ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &time);
  return std::chrono::seconds(::timegm(&time));
}

}  // namespace

TlsContext TlsContext::for_clients(const TlsFiles& files, std::string_view protocol) {
  return TlsContext(false, files, protocol);
}

TlsContext TlsContext::for_servers(const TlsFiles& files) { return TlsContext(true, files, http); }

TlsContext::TlsContext(bool is_server, const TlsFiles& files, std::string_view protocol)
    : context_(SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method()), &SSL_CTX_free) {
  SSL_CTX* const context = context_.get();
  if (!context) throw std::bad_alloc();
  set_versions(context);
  set_modes(context);
  speak(context, is_server, protocol);
  if (is_server) set_tickets(context, !files.ca.empty());
  std::vector<std::string> contents(3);
  if (!files.certificate.empty()) {
    contents[0] = content_of(files.certificate, false);
    contents[1] = content_of(files.key, true);
    use_certificate(context, files.certificate, contents[0]);
    use_key(context, files, contents[1]);
  }
  if (!files.ca.empty()) {
    contents[2] = content_of(files.ca, false);
    trust(context, files.ca, contents[2]);
  } else if (!is_server) {
    SSL_CTX_set_default_verify_paths(context);
  }
  const bool checks_peer = !is_server || !files.ca.empty();
  SSL_CTX_set_verify(
      context, checks_peer ? SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT : SSL_VERIFY_NONE,
      nullptr);
  content_ = digest_of_files(contents);
  OPENSSL_cleanse(contents[1].data(), contents[1].size());
}

std::chrono::seconds TlsContext::expires() const {
  std::chrono::seconds earliest = end_of(SSL_CTX_get0_certificate(get()));
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(get(), &chain);
  for (int i = 0; i < sk_X509_num(chain); ++i)
    earliest = std::min(earliest, end_of(sk_X509_value(chain, i)));
  return earliest;
}

}  // namespace millrace
