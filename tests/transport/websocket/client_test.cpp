// SPDX-License-Identifier: Apache-2.0
#include "transport/websocket/client.h"

#include <array>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/read_until.hpp>
#include <catch2/catch.hpp>

#include "tests/transport/http/client.h"
#include "transport/net/listener.h"
#include "transport/websocket/handshake.h"

using namespace millrace;
using net::experimental::awaitable_operators::operator&&;

namespace {

// Answers one request with `answer`, in which ACCEPT is the value of Sec-WebSocket-Accept.
Task<bool> serve(Acceptor& acceptor, std::string answer) {
  const net::use_awaitable_t<Executor> done{};
  Socket socket = co_await acceptor.async_accept(done);
  std::string request;
  co_await net::async_read_until(socket, net::dynamic_buffer(request), "\r\n\r\n", done);
  constexpr std::string_view field = "Sec-WebSocket-Key: ", mark = "ACCEPT";
  const std::string key = request.substr(request.find(field) + field.size(), 24);
  if (const auto at = answer.find(mark); at != std::string::npos)
    answer.replace(at, mark.size(), accept_of(key));
  co_await net::async_write(socket, net::buffer(answer), no_throw);
  co_return true;
}

// "open", or the error.
Task<std::string> open_and_serve(Acceptor& acceptor, std::string answer) {
  CheckedAccess access(
      {.host = "127.0.0.1", .port = std::to_string(acceptor.local_endpoint().port())});
  const auto [opened, served] =
      co_await (open_stream(acceptor.get_executor(), std::move(access), StreamRequest()) &&
                serve(acceptor, std::move(answer)));
  co_return opened ? "open" : opened.error().message;
}

std::string opened_by(const std::string& answer) {
  net::io_context context{1};
  const std::array contexts{&context};
  auto acceptors = listen_on(Tcp::endpoint(net::ip::address_v4::loopback(), 0), contexts);
  return run(context, open_and_serve(acceptors.front(), answer));
}

std::string switching(const std::string& fields) {
  return "HTTP/1.1 101 Switching Protocols\r\n" + fields + "\r\n";
}

const std::string upgrade = "Upgrade: websocket\r\n", connection = "Connection: Upgrade\r\n",
                  accepted = "Sec-WebSocket-Accept: ACCEPT\r\n",
                  protocol = "Sec-WebSocket-Protocol: millrace.v1\r\n";

}  // namespace

TEST_CASE("a valid upgrade answer opens the WebSocket") {
  for (const auto& fields : {
           upgrade + connection + accepted,
           upgrade + connection + accepted + protocol,
           std::string("upgrade: WebSocket\r\nconnection: keep-alive, upgrade\r\n") + accepted,
           "Connection: keep-alive\r\n" + upgrade + connection + accepted,
       }) {
    INFO(fields);
    CHECK(opened_by(switching(fields)) == "open");
  }
}

TEST_CASE("an invalid upgrade answer is rejected, and the error names the field") {
  struct Case {
    std::string fields;
    std::string wrong;
  };
  const std::string all = upgrade + connection + accepted;
  for (const auto& [fields, wrong] : std::vector<Case>{
           {connection + accepted, "Upgrade"},
           {"Upgrade: h2c\r\n" + connection + accepted, "Upgrade"},
           {"Upgrade: websocket, h2c\r\n" + connection + accepted, "Upgrade"},
           {upgrade + accepted, "Connection"},
           {upgrade + "Connection: keep-alive\r\n" + accepted, "Connection"},
           {upgrade + "Connection: not-upgrade\r\n" + accepted, "Connection"},
           {upgrade + connection, "Sec-WebSocket-Accept"},
           {upgrade + connection + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n",
            "Sec-WebSocket-Accept"},
           {all + accepted, "Sec-WebSocket-Accept"},
           {all + "Sec-WebSocket-Extensions: permessage-deflate\r\n", "Sec-WebSocket-Extensions"},
           {all + "Sec-WebSocket-Protocol: other\r\n", "Sec-WebSocket-Protocol"},
           {all + "Sec-WebSocket-Protocol: Millrace.V1\r\n", "Sec-WebSocket-Protocol"},
           {all + protocol + "Sec-WebSocket-Protocol: other\r\n", "Sec-WebSocket-Protocol"},
       }) {
    INFO(fields);
    CHECK(opened_by(switching(fields)) ==
          "the answer to the WebSocket upgrade has a missing or wrong field: " + wrong);
  }
}

TEST_CASE("an answer that is not HTTP, is too long, or ends too early is an error") {
  CHECK_THAT(opened_by("\xff and so on\r\n\r\n"), Catch::StartsWith("the answer is not HTTP"));
  const std::string endless = std::string(70'000, 'x');
  for (const std::string fields :
       {"Transfer-Encoding: chunked\r\n\r\n1;", "Content-Length: 70000\r\n\r\n", "X: "})
    CHECK(opened_by("HTTP/1.1 500 Internal Server Error\r\n" + fields + endless) ==
          "the answer is too long: more than 8 KiB of header, or 64 KiB of body");
  CHECK(opened_by(switching(upgrade).substr(0, 40)) == "partial message");
}
