// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "schemas/stream_request.h"
#include "transport/net/tls/tls_context.h"
#include "transport/net/tls/tls_session.h"

namespace millrace {

// The address of a service: "ws://127.0.0.1:8080", "wss://speech.example", "tcp://127.0.0.1:5555".
struct ServiceUrl {
  std::string host;
  std::string port = "80";
  bool tls = false;

  std::string host_field() const;  // the value of the HTTP field Host
};

// Parses ws://HOST[:PORT] and wss://HOST[:PORT], optionally followed by / or /v1/stream; the
// default port is 80 or 443. Nullopt for anything else.
std::optional<ServiceUrl> parse_service_url(std::string_view url);
// Parses tcp://HOST[:PORT]; the default port is 5555. Nullopt for anything else.
std::optional<ServiceUrl> parse_tcp_url(std::string_view url);

// The error for any other URL. It does not show passwords and parameters.
std::string wrong_url(std::string_view url);

// The token for a URL with tcp://; may be empty. Throws std::invalid_argument for a token that
// cannot be sent, and for anything else in `access`.
std::string tcp_token(const ServiceAccess& access);

// The access of all connections of a client to one service. Immutable after construction.
class CheckedAccess {
 public:
  // Throws std::invalid_argument for a token or header that cannot be sent, a file that cannot be
  // used, and files of TLS for a service without it. The message names the argument and its file.
  // It has no token and no value of a header.
  explicit CheckedAccess(ServiceUrl url, const ServiceAccess& access = {});

  const ServiceUrl& url() const { return url_; }
  // The fields of each request, as in HTTP.
  const std::string& fields() const { return fields_; }
  // TLS for a socket that is connected, or connecting, to the service; null if its URL is ws://.
  std::unique_ptr<TlsSession> tls(int socket) const;

 private:
  ServiceUrl url_;
  std::string fields_;
  std::optional<TlsContext> context_;
};

}  // namespace millrace
