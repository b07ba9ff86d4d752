// SPDX-License-Identifier: Apache-2.0
#include "commands/console/commands.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <string>
#include <thread>

#include "base/file_descriptor.h"
#include "tests/commands/run_command.h"

using namespace millrace;
using Catch::Matchers::Contains;

namespace {

// Listens on a free port of loopback. answer() accepts one connection.
struct HealthListener {
  FileDescriptor socket{::socket(AF_INET, SOCK_STREAM, 0)};
  std::uint16_t port = 0;

  HealthListener() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(socket.get(), 4) == 0);
    REQUIRE(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port = ntohs(address.sin_port);
  }

  // Answers one request, and returns the request.
  std::string answer(const std::string& text) const {
    const FileDescriptor peer(::accept(socket.get(), nullptr, nullptr));
    char request[1024];
    const auto length = ::recv(peer.get(), request, sizeof request, 0);
    (void)::send(peer.get(), text.data(), text.size(), MSG_NOSIGNAL);
    return {request, static_cast<std::size_t>(std::max<ssize_t>(length, 0))};
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port) + "/readyz"; }
};

test::CommandOutput healthcheck(const std::string& url, const std::string& timeout = "2s") {
  return test::run_command(add_healthcheck_command,
                           {"healthcheck", "--url", url, "--timeout", timeout});
}

test::CommandOutput healthcheck_of(const std::string& answer, std::string* asked = nullptr) {
  const HealthListener listener;
  std::string request;
  std::jthread server([&] { request = listener.answer(answer); });
  const test::CommandOutput output = healthcheck(listener.url());
  server.join();
  if (asked != nullptr) *asked = request;
  return output;
}

}  // namespace

TEST_CASE("a service that is ready is healthy") {
  std::string asked;
  const test::CommandOutput output = healthcheck_of("HTTP/1.1 200 OK\r\n\r\n", &asked);
  CHECK(output.err == "");
  CHECK(output.exit_code == 0);
  CHECK_THAT(asked, Catch::Matchers::StartsWith("GET /readyz HTTP/1.1\r\nHost: 127.0.0.1:"));
}

TEST_CASE("every other status is not healthy") {
  const test::CommandOutput output = healthcheck_of("HTTP/1.1 503 Service Unavailable\r\n\r\n");
  CHECK(output.exit_code == 1);
  CHECK_THAT(output.err, Contains("/readyz: status 503\n"));
}

TEST_CASE("an answer that is not HTTP is not healthy") {
  CHECK_THAT(healthcheck_of("SSH-2.0-OpenSSH_9.2\r\n").err, Contains("the answer is not HTTP"));
  CHECK_THAT(healthcheck_of("HTTP/1.1 2").err, Contains("Connection reset"));
}

TEST_CASE("a service that is absent or too slow is not healthy") {
  const HealthListener listener;
  const test::CommandOutput silent = healthcheck(listener.url(), "20ms");
  CHECK(silent.exit_code == 1);
  CHECK_THAT(silent.err, Contains("timed out"));
  const test::CommandOutput refused = healthcheck("http://127.0.0.1:1/readyz");
  CHECK(refused.exit_code == 1);
  CHECK_THAT(refused.err, Contains("Connection refused"));
}

TEST_CASE("an invalid URL or time is named") {
  CHECK(healthcheck("ftp://127.0.0.1:1/").err ==
        "millrace healthcheck: --url: \"ftp://127.0.0.1:1/\" must be http://ADDRESS:PORT/PATH or "
        "https://…\n");
  CHECK(healthcheck("http://127.0.0.1:1/", "2").err ==
        "millrace healthcheck: --timeout: \"2\" must be a time such as 2s\n");
}
