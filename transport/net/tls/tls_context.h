// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

struct ssl_ctx_st;  // OpenSSL's SSL_CTX

namespace millrace {

// Paths of files in the format PEM; empty: no file.
struct TlsFiles {
  std::string certificate = {};  // its own one first, then those of the authorities between
  std::string key = {};          // the certificate's; a file that read_secret_file() accepts
  std::string ca = {};           // certificates of the authorities that sign those of peers

  bool operator==(const TlsFiles&) const = default;
};

// The settings that TLS sessions share: TLS 1.2 and 1.3, without renegotiation, compression and
// early data. They have the content of the files, which are read once. Immutable after
// construction; copies share their content.
class TlsContext {
 public:
  // For clients, which check the name and the certificate of the server. Without a `ca` the
  // authorities of the system count. With a certificate, they show it to a server that asks.
  // `protocol` is the only one that they speak, an ALPN identifier: tests have others.
  //
  // Both functions throw std::invalid_argument, which names the file at fault.
  static TlsContext for_clients(const TlsFiles& files, std::string_view protocol = http);
  // For servers. With a `ca`, their clients must show a certificate of it, also when they come
  // again: there are no tickets then. A client that offers protocols, and not `http`, is refused.
  // Requires: a certificate and a key.
  static TlsContext for_servers(const TlsFiles& files);

  static constexpr std::string_view http = "http/1.1";

  ssl_ctx_st* get() const { return context_.get(); }
  // The end of its own certificate, or of one that came with it: the earliest, as the time since
  // 1970 by the wall clock. Requires: a certificate.
  std::chrono::seconds expires() const;

  // True if the content of the files is the same.
  bool operator==(const TlsContext& other) const { return content_ == other.content_; }

 private:
  TlsContext(bool is_server, const TlsFiles& files, std::string_view protocol);

  std::shared_ptr<ssl_ctx_st> context_;
  std::string content_;  // a digest of the files
};

}  // namespace millrace
