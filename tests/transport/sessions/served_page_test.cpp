// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "tests/transport/sessions/server_fixture.h"
#include "transport/http/host.h"
#include "transport/http/page_file.h"

using namespace millrace;
using Catch::Contains;
using Catch::EndsWith;
using Catch::StartsWith;

namespace {

constexpr PageFile files[] = {{"/", "text/html", "\"1\"", "<p>try"},
                              {"/a.js", "text/javascript", "\"2\"", "run()"}};

struct PageFixture : ServerFixture {
  PageFixture() : ServerFixture(files) {}

  std::string get(const std::string& path, const std::string& fields = "Host: 127.0.0.1\r\n") {
    return send("GET " + path + " HTTP/1.1\r\n" + fields + "\r\n");
  }
  // The status of an upgrade from a page of `origin`, loaded from `host`.
  std::string status(const std::string& host, const std::string& origin) {
    std::string bytes = request("/v1/stream", "Origin: " + origin + "\r\n");
    bytes.replace(bytes.find("localhost"), 9, host);
    return send(bytes + "\x88\x80\x01\x02\x03\x04").substr(9, 3);
  }
};

bool is_own(std::string host, std::string origin) {
  return is_from_own_page({.method = "GET",
                           .target = "/",
                           .fields = {{"Host", std::move(host)}, {"Origin", std::move(origin)}}});
}

}  // namespace

TEST_CASE_METHOD(PageFixture, "the files of a page are served, and do not count as refusals") {
  CHECK_THAT(get("/"), StartsWith("HTTP/1.1 200 OK") && EndsWith("\r\n\r\n<p>try") &&
                           Contains("Content-Security-Policy: default-src 'self'\r\n") &&
                           Contains("Content-Type: text/html\r\n") && Contains("ETag: \"1\"\r\n"));
  CHECK_THAT(get("/a.js?x=1"), StartsWith("HTTP/1.1 200 OK") && EndsWith("\r\n\r\nrun()"));
  CHECK(stats.refused[Refusal::parameter].value() + stats.refused[Refusal::handshake].value() == 0);
  CHECK_THAT(get("/b.js"), StartsWith("HTTP/1.1 404 "));
  CHECK_THAT(get("/", "Host: evil.example\r\n"), StartsWith("HTTP/1.1 421 "));
  CHECK_THAT(get("/", "Host: localhost\r\nOrigin: https://evil.example\r\n"),
             StartsWith("HTTP/1.1 403 "));
}

TEST_CASE_METHOD(PageFixture, "a file that the browser has cached is not sent again") {
  const std::string answer = get("/a.js", "Host: localhost\r\nIf-None-Match: \"2\"\r\n");
  CHECK_THAT(answer, StartsWith("HTTP/1.1 304 ") && EndsWith("\r\n\r\n"));
  CHECK_THAT(get("/a.js", "Host: localhost\r\nIf-None-Match: \"1\"\r\n"),
             StartsWith("HTTP/1.1 200 "));
}

TEST_CASE_METHOD(PageFixture, "a HEAD of a page has no body") {
  const std::string answer = send("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK_THAT(answer, StartsWith("HTTP/1.1 200 OK") && Contains("Content-Length: 6\r\n") &&
                         EndsWith("\r\n\r\n"));
}

TEST_CASE_METHOD(PageFixture, "the served page may open streams, and other pages must be listed") {
  CHECK(status("127.0.0.1:80", "http://127.0.0.1:80") == "101");
  CHECK(status("localhost", "http://localhost") == "101");
  CHECK(status("localhost", "https://good.example") == "101");
  CHECK(status("localhost:80", "http://localhost") == "403");
  CHECK(status("localhost", "http://127.0.0.1") == "403");
  CHECK(status("localhost", "null") == "403");
}

TEST_CASE_METHOD(ServerFixture, "without a page, only the path of streams is served") {
  CHECK_THAT(send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  CHECK(send(request("/v1/stream", "Origin: http://localhost:1\r\n")).substr(9, 3) == "403");
}

TEST_CASE_METHOD(ServerFixture,
                 "health checks of any form are answered, and are no refused clients") {
  const auto refused = [&] {
    return stats.refused[Refusal::parameter].value() + stats.refused[Refusal::handshake].value();
  };
  const std::string fields = " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  CHECK_THAT(send("GET /livez" + fields), StartsWith("HTTP/1.1 200 ") && EndsWith("alive\n"));
  CHECK_THAT(send("HEAD /livez" + fields), StartsWith("HTTP/1.1 200 ") && EndsWith("\r\n\r\n"));
  CHECK_THAT(send("GET /" + fields), StartsWith("HTTP/1.1 404 "));
  CHECK_THAT(send("HEAD /" + fields), StartsWith("HTTP/1.1 404 ") && EndsWith("\r\n\r\n"));
  CHECK_THAT(send("OPTIONS / HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.1 405 "));
  CHECK_THAT(send("HEAD /v1/stream" + fields), StartsWith("HTTP/1.1 426 "));
  Socket check(context);
  check.connect(server.endpoint());
  check.close();
  CHECK(refused() == 0);
  CHECK_THAT(send("GET /v1/stream" + fields), StartsWith("HTTP/1.1 426 "));
  CHECK(refused() == 0);
  // A client whose proxy has removed two fields.
  CHECK_THAT(send("GET /v1/stream HTTP/1.1\r\nHost: localhost\r\n"
                  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"),
             StartsWith("HTTP/1.1 426 "));
  CHECK(refused() == 1);
  send("hello\r\n\r\n");
  CHECK(refused() == 2);
}

TEST_CASE_METHOD(PageFixture,
                 "a page learns why its stream was refused, by a GET without upgrade") {
  admission.refuses = RequestError{.status = 503, .message = "no room"};
  CHECK_THAT(get("/v1/stream"), StartsWith("HTTP/1.1 503 ") && Contains("\"no room\""));
  CHECK_THAT(get("/v1/stream?rate=x"),
             StartsWith("HTTP/1.1 400 ") && Contains("\"parameter\":\"rate\""));
  admission.refuses.reset();
  CHECK_THAT(get("/v1/stream"), StartsWith("HTTP/1.1 426 "));
  CHECK(admission.requests.empty());
  for (const auto reason : {Refusal::parameter, Refusal::handshake, Refusal::no_room})
    CHECK(stats.refused[reason].value() == 0);
}

TEST_CASE_METHOD(PageFixture, "a listed page of another origin may read answers, and others not") {
  const std::string page = "Host: localhost\r\nOrigin: https://good.example\r\n";
  CHECK_THAT(get("/v1/pipelines", page),
             StartsWith("HTTP/1.1 200 ") && EndsWith("\r\n\r\n{\"pipelines\":[]}") &&
                 Contains("Access-Control-Allow-Origin: https://good.example\r\n"));
  CHECK_THAT(get("/v1/pipelines", "Host: localhost\r\nOrigin: https://evil.example\r\n"),
             StartsWith("HTTP/1.1 403 ") && !Contains("Access-Control"));
  CHECK_THAT(get("/v1/pipelines"), !Contains("Access-Control"));
}

TEST_CASE_METHOD(PageFixture, "with a list of tokens a client needs one of them") {
  gate.access.replace({.tokens = std::make_shared<const TokenList>(
                           *TokenList::parse(to_hex(digest_of("secret")) + " alice"))});
  const auto status = [this](const std::string& fields) {
    return send(request("/v1/stream", fields) + "\x88\x80\x01\x02\x03\x04").substr(9, 3);
  };
  CHECK_THAT(send(request("/v1/stream?token=secret")),
             StartsWith("HTTP/1.1 401 ") && Contains("WWW-Authenticate: Bearer\r\n") &&
                 Contains(R"({"error":{"code":"unauthenticated","message":"a token is required)"));
  CHECK(status("Authorization: Bearer secre\r\n") == "401");
  CHECK(stats.refused[Refusal::unauthenticated].value() == 2);
  CHECK(admission.requests.empty());
  CHECK(status("Authorization: Bearer secret\r\n") == "101");
  CHECK_THAT(send(request("/v1/stream", "Sec-WebSocket-Protocol: millrace.v1, token, secret\r\n") +
                  "\x88\x80\x01\x02\x03\x04"),
             StartsWith("HTTP/1.1 101 ") && Contains("Sec-WebSocket-Protocol: millrace.v1\r\n") &&
                 !Contains("secret"));
  CHECK(stats.refused[Refusal::unauthenticated].value() == 2);
}

TEST_CASE_METHOD(PageFixture, "the page and health checks need no token, and other requests do") {
  gate.access.replace({.tokens = std::make_shared<const TokenList>()});
  CHECK_THAT(get("/"), StartsWith("HTTP/1.1 200 OK") && EndsWith("<p>try"));
  CHECK_THAT(get("/livez"), StartsWith("HTTP/1.1 200 OK"));
  for (const char* path : {"/v1/pipelines", "/v1/stream", "/none"})
    CHECK_THAT(get(path), StartsWith("HTTP/1.1 401 ") && !Contains("pipelines\":"));
  CHECK(stats.refused[Refusal::unauthenticated].value() ==
        0);  // a GET without an upgrade only asks
  CHECK_THAT(get("/livez", "Host: evil.example\r\n"), StartsWith("HTTP/1.1 421 "));
}

TEST_CASE_METHOD(PageFixture, "a listed page of another origin may send a token in a field") {
  gate.access.replace({.tokens = std::make_shared<const TokenList>()});
  const auto asked = [this](const std::string& origin) {
    return send("OPTIONS /v1/pipelines HTTP/1.1\r\nHost: localhost\r\nOrigin: " + origin +
                "\r\nAccess-Control-Request-Method: GET\r\n"
                "Access-Control-Request-Headers: authorization\r\n\r\n");
  };
  CHECK_THAT(asked("https://good.example"),
             StartsWith("HTTP/1.1 200 ") &&
                 Contains("Access-Control-Allow-Headers: Authorization\r\n") &&
                 Contains("Access-Control-Allow-Origin: https://good.example\r\n"));
  CHECK_THAT(asked("https://evil.example"),
             StartsWith("HTTP/1.1 403 ") && !Contains("Access-Control"));
}

TEST_CASE("a page is the listener's own only if its host is an address or localhost") {
  CHECK(is_own("192.168.1.5:8080", "http://192.168.1.5:8080"));
  CHECK(is_own("[::1]:8080", "https://[::1]:8080"));
  CHECK(is_own("localhost:8080", "http://localhost:8080"));
  // Such a name may have been rebound to this machine after the page was loaded.
  CHECK_FALSE(is_own("rebound.example:8080", "http://rebound.example:8080"));
  CHECK_FALSE(is_own("[::1", "http://[::1"));
  CHECK_FALSE(is_own("1.2.3.4.5", "http://1.2.3.4.5"));
  CHECK_FALSE(is_own("127.0.0.1", "http://127.0.0.2"));
}
