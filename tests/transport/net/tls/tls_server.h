// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "base/file_descriptor.h"
#include "tests/support/temporary_directory.h"

namespace millrace::test {

// A certificate that is signed by itself, and its key, in memory and in files.
class Certificate {
 public:
  explicit Certificate(const char* names = "DNS:localhost,IP:127.0.0.1", long seconds = 3600)
      : key_(EVP_EC_gen("P-256"), &EVP_PKEY_free), certificate_(X509_new(), &X509_free) {
    X509* it = certificate_.get();
    X509_set_version(it, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(it), 1);
    X509_gmtime_adj(X509_getm_notBefore(it), -7200);
    X509_gmtime_adj(X509_getm_notAfter(it), seconds);
    X509_set_pubkey(it, key_.get());
    const auto* name = reinterpret_cast<const unsigned char*>("test");
    X509_NAME_add_entry_by_txt(X509_get_subject_name(it), "CN", MBSTRING_ASC, name, -1, -1, 0);
    X509_set_issuer_name(it, X509_get_subject_name(it));
    X509_EXTENSION* alternatives =
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, names);
    X509_add_ext(it, alternatives, -1);
    X509_EXTENSION_free(alternatives);
    REQUIRE(X509_sign(it, key_.get(), EVP_sha256()) > 0);
    FILE* file = std::fopen(path_.c_str(), "w");
    REQUIRE(file);
    PEM_write_X509(file, it);
    std::fclose(file);
    file = ::fdopen(::open(key_path_.c_str(), O_CREAT | O_WRONLY, 0600), "w");
    REQUIRE(file);
    PEM_write_PrivateKey(file, key_.get(), nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(file);
  }

  const std::string& path() const { return path_; }
  const std::string& key_path() const { return key_path_; }
  X509* get() const { return certificate_.get(); }
  EVP_PKEY* key() const { return key_.get(); }

 private:
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key_;
  const std::unique_ptr<X509, decltype(&X509_free)> certificate_;
  const TemporaryDirectory folder_;
  const std::string path_ = folder_ / "certificate.pem", key_path_ = folder_ / "key.pem";
};

// A server's end of TLS on a socket, by OpenSSL alone, and the socket of its client.
class TlsServer {
 public:
  explicit TlsServer(const Certificate& certificate)
      : context_(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free) {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    client = FileDescriptor(ends[0]);
    own = FileDescriptor(ends[1]);
    SSL_CTX_use_certificate(context_.get(), certificate.get());
    SSL_CTX_use_PrivateKey(context_.get(), certificate.key());
    session.reset(SSL_new(context_.get()));
    SSL_set_fd(session.get(), own.get());
    SSL_set_accept_state(session.get());
  }

  FileDescriptor client, own;

 private:
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;

 public:
  std::unique_ptr<SSL, decltype(&SSL_free)> session{nullptr, &SSL_free};
};

}  // namespace millrace::test
