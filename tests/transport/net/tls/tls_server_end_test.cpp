// SPDX-License-Identifier: Apache-2.0
// The server's end of TLS, with a client of ours, or one by OpenSSL alone.
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <span>
#include <string>

#include "tests/transport/net/tls/tls_server.h"
#include "transport/net/tls/tls_session.h"

using namespace millrace;
using boost::system::error_code;
using Catch::Contains;
using test::Certificate;

namespace {

struct SocketPair {
  SocketPair() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    client = FileDescriptor(ends[0]);
    server = FileDescriptor(ends[1]);
  }
  FileDescriptor client, server;
};

std::string read(TlsSession& session, error_code& error) {
  std::string bytes(32768, '\0');
  bytes.resize(session.read(std::as_writable_bytes(std::span(bytes)), error));
  return bytes;
}

// Both ends are ours.
struct Ends : SocketPair {
  explicit Ends(const TlsFiles& of_server, const TlsFiles& of_client,
                std::string_view protocol = TlsContext::http)
      : at_server(TlsContext::for_servers(of_server), server.get()),
        at_client(TlsContext::for_clients(of_client, protocol), client.get(), "localhost") {
    for (int turn = 0; turn < 4; ++turn) {
      client_error = at_client.handshake();
      if (server_error == error_code() || server_error == net::error::would_block)
        server_error = at_server.handshake();
    }
    (void)read(at_client, client_error);
  }
  TlsSession at_server, at_client;
  error_code server_error, client_error;
};

struct Files {
  Certificate server, client;
  TlsFiles of_server{.certificate = server.path(), .key = server.key_path()};
  TlsFiles of_client{.ca = server.path()};
};

// A client by OpenSSL, with its own settings.
class RawClient : public SocketPair {
 public:
  explicit RawClient(const TlsFiles& of_server)
      : at_server(TlsContext::for_servers(of_server), server.get()) {}

  // The handshake, as far as it goes; returns the server's last error.
  error_code shake_hands() {
    session.reset(SSL_new(context.get()));
    SSL_set_fd(session.get(), client.get());
    SSL_set_connect_state(session.get());
    error_code error = net::error::would_block;
    for (int turn = 0; turn < 4 && error == net::error::would_block; ++turn) {
      SSL_do_handshake(session.get());
      error = at_server.handshake();
    }
    char byte;
    SSL_read(session.get(), &byte, 1);  // a ticket, or an alert
    ERR_clear_error();
    return error;
  }

  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context{SSL_CTX_new(TLS_client_method()),
                                                            &SSL_CTX_free};
  std::unique_ptr<SSL, decltype(&SSL_free)> session{nullptr, &SSL_free};
  TlsSession at_server;
};

}  // namespace

TEST_CASE_METHOD(Files, "a client and a server exchange bytes after their handshake") {
  Ends ends(of_server, of_client);
  REQUIRE_FALSE(ends.server_error);
  CHECK(ends.at_client.write(bytes_in("hello"), ends.client_error) == 5);
  CHECK(read(ends.at_server, ends.server_error) == "hello");
  CHECK(ends.at_server.write(bytes_in("answer"), ends.server_error) == 6);
  CHECK(read(ends.at_client, ends.client_error) == "answer");
  CHECK(read(ends.at_server, ends.server_error).empty());
  CHECK(ends.server_error == net::error::would_block);
}

TEST_CASE_METHOD(Files,
                 "a server with authorities accepts only clients with a certificate of one") {
  of_server.ca = client.path();
  SECTION("a right one") {
    of_client.certificate = client.path();
    of_client.key = client.key_path();
    Ends ends(of_server, of_client);
    CHECK_FALSE(ends.server_error);
    CHECK(ends.at_client.failure().empty());
  }
  SECTION("another one") {
    const Certificate stranger;
    of_client.certificate = stranger.path();
    of_client.key = stranger.key_path();
    Ends ends(of_server, of_client);
    CHECK_THAT(ends.at_server.failure(), Contains("the client's certificate was refused"));
    CHECK(ends.client_error == net::error::connection_aborted);
  }
  SECTION("an expired one") {
    const Certificate expired("DNS:client", -60);
    of_server.ca = expired.path();
    of_client.certificate = expired.path();
    of_client.key = expired.key_path();
    Ends ends(of_server, of_client);
    CHECK_THAT(ends.at_server.failure(), Contains("expired"));
  }
  SECTION("none") {
    Ends ends(of_server, of_client);
    CHECK_THAT(ends.at_server.failure(), Contains("peer did not return a certificate"));
  }
}

TEST_CASE_METHOD(Files, "a client that offers only other protocols is refused") {
  CHECK_FALSE(Ends(of_server, of_client).server_error);
  CHECK_THAT(Ends(of_server, of_client, "h2").at_server.failure(),
             Contains("no application protocol"));
}

TEST_CASE_METHOD(Files, "versions before 1.2 are refused") {
  for (const auto& [version, accepted] : {std::pair{TLS1_VERSION, false},
                                          {TLS1_1_VERSION, false},
                                          {TLS1_2_VERSION, true},
                                          {TLS1_3_VERSION, true}}) {
    RawClient raw(of_server);
    SSL_CTX_set_security_level(raw.context.get(), 0);
    SSL_CTX_set_min_proto_version(raw.context.get(), version);
    SSL_CTX_set_max_proto_version(raw.context.get(), version);
    CHECK(!raw.shake_hands() == accepted);
  }
}

TEST_CASE_METHOD(Files, "a client that asks for a renegotiation does not get one") {
  RawClient raw(of_server);
  SSL_CTX_set_max_proto_version(raw.context.get(), TLS1_2_VERSION);
  REQUIRE_FALSE(raw.shake_hands());
  SSL_renegotiate(raw.session.get());
  SSL_do_handshake(raw.session.get());
  error_code error;
  CHECK(read(raw.at_server, error).empty());
  const int outcome = SSL_do_handshake(raw.session.get());
  CHECK(SSL_get_error(raw.session.get(), outcome) == SSL_ERROR_SSL);
}

TEST_CASE_METHOD(Files, "a session is resumed by its ticket, and the server keeps nothing") {
  const TlsContext server_context = TlsContext::for_servers(of_server);
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                                  &SSL_CTX_free);
  SSL_SESSION* ticket = nullptr;
  for (const bool again : {false, true}) {
    SocketPair pair;
    TlsSession at_server(server_context, pair.server.get());
    const std::unique_ptr<SSL, decltype(&SSL_free)> session(SSL_new(context.get()), &SSL_free);
    SSL_set_fd(session.get(), pair.client.get());
    SSL_set_connect_state(session.get());
    if (again) SSL_set_session(session.get(), ticket);
    for (int turn = 0; turn < 4; ++turn) {
      SSL_do_handshake(session.get());
      (void)at_server.handshake();
    }
    char byte;
    SSL_read(session.get(), &byte, 1);
    CHECK((SSL_session_reused(session.get()) == 1) == again);
    if (!again) ticket = SSL_get1_session(session.get());
    SSL_shutdown(session.get());
  }
  SSL_SESSION_free(ticket);
  CHECK(SSL_CTX_sess_number(server_context.get()) == 0);
}

TEST_CASE_METHOD(Files, "a client that only checks the port has ended properly") {
  SocketPair pair;
  TlsSession at_server(TlsContext::for_servers(of_server), pair.server.get());
  CHECK(at_server.handshake() == net::error::would_block);
  pair.client = FileDescriptor();
  CHECK(at_server.handshake() == net::error::eof);
  CHECK(at_server.failure().empty());
}

TEST_CASE_METHOD(Files, "HTTP without TLS is recognised, and other bytes are an error") {
  for (const auto& [bytes, is_http] : {std::pair{std::string("GET /v1/stream HTTP/1.1\r\n"), true},
                                       {std::string(64, 'x'), false}}) {
    SocketPair pair;
    TlsSession at_server(TlsContext::for_servers(of_server), pair.server.get());
    REQUIRE(::send(pair.client.get(), bytes.data(), bytes.size(), 0) > 0);
    CHECK(at_server.handshake() == net::error::connection_aborted);
    CHECK(at_server.is_plain_http() == is_http);
  }
}
