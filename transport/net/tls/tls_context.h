// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

struct ssl_ctx_st;  // OpenSSL's SSL_CTX

namespace millrace {

// The settings that the TLS sessions of a client share: the authorities that it trusts. TLS 1.2
// and 1.3. Immutable after construction; copies share their content.
class TlsContext {
 public:
  // `ca`: a file with certificates of authorities (PEM), which replace those of the system. Empty:
  // those of the system. Throws std::invalid_argument if the file cannot be used.
  explicit TlsContext(const std::string& ca);

  ssl_ctx_st* get() const { return context_.get(); }

 private:
  std::shared_ptr<ssl_ctx_st> context_;
};

}  // namespace millrace
