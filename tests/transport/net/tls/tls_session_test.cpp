// SPDX-License-Identifier: Apache-2.0
#include "transport/net/tls/tls_session.h"

#include <array>
#include <catch2/catch.hpp>
#include <span>
#include <string>

#include "tests/transport/net/tls/tls_server.h"

using namespace millrace;
using test::Certificate;
using test::TlsServer;

namespace {

using boost::system::error_code;

struct TlsFixture {
  explicit TlsFixture(const std::string& host = "localhost")
      : session(context, server.client.get(), host) {}

  // Writes and reads at both ends until neither waits for the other.
  void shake_hands() {
    for (int turn = 0; turn < 10; ++turn) {
      (void)read();
      SSL_do_handshake(server.session.get());
      ERR_clear_error();
    }
  }
  std::string read(std::size_t most = 32768) {
    std::string bytes(most, '\0');
    bytes.resize(session.read(std::as_writable_bytes(std::span(bytes)), error));
    return bytes;
  }
  std::size_t write(std::string_view bytes) { return session.write(bytes_in(bytes), error); }
  void serve(const std::string& bytes) {
    REQUIRE(SSL_write(server.session.get(), bytes.data(), static_cast<int>(bytes.size())) ==
            static_cast<int>(bytes.size()));
  }
  std::string served(std::size_t most = 32768) {
    std::string bytes(most, '\0');
    const int size = SSL_read(server.session.get(), bytes.data(), static_cast<int>(most));
    bytes.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    return bytes;
  }

  Certificate certificate;
  TlsContext context = TlsContext::for_clients({.ca = certificate.path()});
  TlsServer server{certificate};
  TlsSession session;
  error_code error;
};

}  // namespace

TEST_CASE_METHOD(TlsFixture, "bytes that are written arrive, and those of the server are read") {
  CHECK(write("hello") == 0);
  CHECK(error == net::error::would_block);
  CHECK(session.write_awaits() == Socket::wait_read);
  shake_hands();
  CHECK(write("hello") == 5);
  CHECK(served() == "hello");
  serve("answer");
  CHECK(read() == "answer");
  CHECK(read().empty());
  CHECK(error == net::error::would_block);
}

TEST_CASE_METHOD(TlsFixture, "decrypted bytes that were not read are reported as buffered") {
  shake_hands();
  serve(std::string(1000, 'a'));
  CHECK(read(100).size() == 100);
  CHECK(session.buffered() == 900);
  CHECK(read().size() == 900);
  CHECK(session.buffered() == 0);
}

TEST_CASE_METHOD(TlsFixture, "only an end with close_notify is the end of the data") {
  shake_hands();
  SECTION("with it") {
    SSL_shutdown(server.session.get());
    CHECK(read().empty());
    CHECK(error == net::error::eof);
    CHECK(session.failure().empty());
  }
  SECTION("without it") {
    server.own = FileDescriptor();
    CHECK(read().empty());
    CHECK(error == net::error::connection_aborted);
    CHECK_THAT(session.failure(), Catch::Contains("lost"));
  }
}

TEST_CASE_METHOD(TlsFixture, "close() tells the server that the data has ended") {
  shake_hands();
  session.close();
  CHECK(served().empty());
  CHECK(SSL_get_shutdown(server.session.get()) == SSL_RECEIVED_SHUTDOWN);
}

TEST_CASE_METHOD(TlsFixture, "a write to a server that has gone is an error, and no signal") {
  shake_hands();
  server.own = FileDescriptor();
  CHECK(write("late") == 0);
  CHECK(error == boost::system::errc::broken_pipe);
}

TEST_CASE_METHOD(TlsFixture, "a long write continues where the socket was full") {
  shake_hands();
  const std::string bytes(1 << 20, 'x');
  std::size_t sent = 0, arrived = 0;
  bool was_full = false;
  while (sent < bytes.size()) {
    const std::size_t count = write(std::string(bytes, sent));  // moved
    sent += count;
    was_full |= sent < bytes.size();
    while (const std::size_t taken = served().size()) arrived += taken;
  }
  CHECK(was_full);
  CHECK(arrived == bytes.size());
}

TEST_CASE_METHOD(TlsFixture, "a read that must write first waits for the socket to be writable") {
  const std::string other(4096, 'x');
  while (::send(server.client.get(), other.data(), other.size(), 0) > 0) continue;
  CHECK(read().empty());
  CHECK(error == net::error::would_block);
  CHECK(session.read_awaits() == Socket::wait_write);
  std::string dropped(4096, '\0');
  while (::recv(server.own.get(), dropped.data(), dropped.size(), 0) > 0) continue;
  shake_hands();
  serve("answer");
  CHECK(read() == "answer");
}

TEST_CASE_METHOD(TlsFixture, "a server that asks for new keys gets them") {
  shake_hands();
  REQUIRE(SSL_key_update(server.session.get(), SSL_KEY_UPDATE_REQUESTED) == 1);
  REQUIRE(SSL_do_handshake(server.session.get()) == 1);
  serve("with new keys");
  while (read().empty()) REQUIRE(error == net::error::would_block);
  CHECK(write("with new keys too") > 0);
  CHECK(served() == "with new keys too");
}

TEST_CASE_METHOD(TlsFixture,
                 "a read handles one record, so that new keys without end do not hold it") {
  shake_hands();
  for (int update = 0; update < 20; ++update) {
    REQUIRE(SSL_key_update(server.session.get(), SSL_KEY_UPDATE_NOT_REQUESTED) == 1);
    REQUIRE(SSL_do_handshake(server.session.get()) == 1);
  }
  serve("data");
  CHECK(read().empty());
  CHECK(error == net::error::would_block);
  CHECK(session.read_awaits() == Socket::wait_read);
}

TEST_CASE("a certificate for another host is refused, and the error names the cause") {
  for (const std::string host : {"elsewhere", "127.0.0.2"}) {
    TlsFixture fixture(host);
    fixture.shake_hands();
    CHECK(fixture.error == net::error::connection_aborted);
    CHECK_THAT(
        fixture.session.failure(),
        Catch::StartsWith("the server's certificate was refused") && Catch::Contains("mismatch"));
  }
  TlsFixture by_address("127.0.0.1");
  by_address.shake_hands();
  CHECK(by_address.session.failure().empty());
}

TEST_CASE("a server that does not speak TLS is an error that names ws://") {
  TlsFixture fixture;
  (void)fixture.read();
  constexpr std::string_view answer = "HTTP/1.1 400 Bad Request\r\n\r\n";
  REQUIRE(::send(fixture.server.own.get(), answer.data(), answer.size(), 0) > 0);
  (void)fixture.read();
  CHECK(fixture.error == net::error::connection_aborted);
  CHECK(fixture.session.failure() == "the server does not speak TLS; use ws://");
}

TEST_CASE_METHOD(TlsFixture, "after its socket was closed, a session writes and reads nothing") {
  shake_hands();
  session.forget_socket();
  CHECK(write("to the next socket of this number") == 0);
  CHECK(error == boost::system::errc::bad_file_descriptor);
  CHECK(served().empty());
  CHECK(read().empty());
  CHECK(error);
}
