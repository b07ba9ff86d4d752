// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <future>

#include "client/client.h"
#include "tests/client/cutting_proxy.h"
#include "tests/client/resumed_stream.h"
#include "tests/client/resuming_service.h"
#include "tests/client/stream_texts.h"
#include "tests/support/patience.h"

using namespace millrace;
using namespace millrace::test;
using namespace std::chrono_literals;

namespace {

// Streams all over a connection that is cut.
Outcome run(ResumingService& host, std::vector<CuttingProxy::Cut> cuts,
            const ClientSettings& settings = {}) {
  const ScriptedService service(host);
  const CuttingProxy proxy(service.url(), std::move(cuts));
  Client client(proxy.url(), settings);
  ClientStream stream = client.start();
  send_all(stream);
  Outcome outcome{.words = events_of(stream)};
  outcome.resumed = std::erase(outcome.words, "resumed");
  return outcome;
}

}  // namespace

TEST_CASE("a stream whose connection is not lost is as without resuming") {
  ResumingService host({});
  CHECK(run(host, {}).words == all);
  CHECK(host.connections() == 1);
}

TEST_CASE("wherever the connection to the client is cut, each result is received once") {
  for (std::size_t bytes = 265; bytes < 1600; bytes += 13) {
    CAPTURE(bytes);
    ResumingService host({});
    const auto [words, resumed] = run(host, {{.down = bytes}});
    CHECK(words == all);
    CHECK(host.problems().empty());
    // Without `ready`, there is nothing to resume: the open itself has failed then.
    CHECK(host.connections() == 1 + resumed);
  }
}

TEST_CASE("wherever the connection to the service is cut, each frame is sent until it arrives") {
  for (std::size_t bytes = 260; bytes < 700; bytes += 3) {
    CAPTURE(bytes);
    ResumingService host({});
    CHECK(run(host, {{.up = bytes}}).words == all);
    CHECK(host.problems().empty());
  }
}

TEST_CASE("a stream survives many losses, also those before the service has answered") {
  for (std::size_t bytes = 300; bytes < 900; bytes += 29) {
    CAPTURE(bytes);
    ResumingService host({});
    const auto [words, resumed] =
        run(host, {{.down = bytes}, {.down = 250}, {.up = 600}, {.down = bytes}, {.down = 700}});
    CHECK(words == all);
    CHECK(host.problems().empty());
  }
}

TEST_CASE("if the service has lost the stream, it is opened anew, and each result comes once") {
  for (std::size_t bytes = 300; bytes < 1300; bytes += 31) {
    CAPTURE(bytes);
    ResumingService host({.forgets = true});
    auto words = run(host, {{.down = bytes}}).words;
    CHECK(static_cast<int>(std::erase(words, "anew")) == host.connections() - 1);
    auto results = all;
    for (auto* list : {&words, &results})  // those of repeated rows are repeated
      std::erase_if(*list, [](const auto& word) {
        return word.starts_with("message") || word.starts_with("rejected");
      });
    CHECK(words == results);
    CHECK(host.problems().empty());
  }
}

TEST_CASE("a stream of Opus packets survives losses of its connection") {
  for (std::size_t bytes = 300; bytes < 700; bytes += 17) {
    CAPTURE(bytes);
    ResumingService host({.packets = true, .keep = 4});
    const ScriptedService service(host);
    const CuttingProxy proxy(service.url(), {{.down = bytes}, {.up = 500}});
    Client client(proxy.url());
    ClientStream stream = client.open({.format = "opus"});
    for (const char* packet : {"aa1", "bb", "cc345", "dd6", "ee", "ff7"})
      stream.send(bytes_in(packet));
    stream.end();
    CHECK(answers_of(stream) == Words{"aa", "bb", "cc", "dd", "ee", "ff"});
  }
}

TEST_CASE("sending waits if the service acknowledges too little, and continues") {
  ResumingService host({.keep = 4, .lag = 2});
  CHECK(run(host, {{.down = 600}, {.down = 600}}).words == all);
}

TEST_CASE("a stream that is held up survives losses of its connection") {
  ResumingService host({});
  CHECK(run(host, {{.down = 600}, {.down = 600}}, {.untaken = 100}).words == all);
}

TEST_CASE("a stream whose service accepts it but does not answer is tried again") {
  ResumingService host({.silent = 3});
  CHECK(run(host, {{.down = 600}}).words == all);
  CHECK(host.connections() == 5);
}

TEST_CASE("a stream whose service never answers is lost after the window however old it is") {
  ResumingService host({.silent = 1 << 30});
  const ScriptedService service(host);
  const CuttingProxy proxy(service.url(), {{.down = 200'000}});
  Client client(proxy.url(), {.resume_window = 100ms});
  ClientStream stream = client.open();
  const auto talk = [&] {
    do stream.send(bytes_in("aa"));
    while (stream.next_until(Clock::now() + patience));
  };
  CHECK_THROWS_AS(talk(), ConnectionLost);
}

TEST_CASE("a stream that an older request takes from its connection is resumed") {
  ResumingService host({.conflicts = 2});
  CHECK(run(host, {{.down = 600}}).words == all);
  CHECK(host.connections() == 4);
}

TEST_CASE("after a message with a wrong number the stream is resumed, but not forever") {
  ResumingService host({.wrong = 2});
  CHECK(run(host, {}).words == all);
  ResumingService broken({.wrong = 1000});
  const auto words = run(broken, {}, {.resume_window = 200ms}).words;
  CHECK(words.back().starts_with("the service sent an invalid message"));
}

TEST_CASE("a stream that the service no longer has is lost at once") {
  for (const char* status : {"404 Not Found", "400 Bad Request", "403 Forbidden"}) {
    ResumingService host(
        {.refusal = "HTTP/1.1 " + std::string(status) +
                    "\r\nContent-Length: 68\r\n\r\n"
                    R"({"error":{"code":"unknown_stream","parameter":"","message":"gone"}})"
                    " "});
    const auto words = run(host, {{.down = 600}}).words;
    CHECK(words.back() ==
          "the connection was lost, and the service no longer has the stream: refused as "
          "unknown_stream: gone");
    CHECK(host.targets().size() == 2);
  }
}

TEST_CASE("a token in conflict is shown once more") {
  ResumingService host({.refusal = "HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\n\r\n"});
  const auto words = run(host, {{.down = 600}}).words;
  CHECK_THAT(words.back(), Catch::Contains("refused as conflict"));
  CHECK(host.targets().size() == 3);
}

TEST_CASE("a stream that cannot be resumed within the window is lost") {
  ResumingService host({.refusal = "HTTP/1.1 503 Unavailable\r\nContent-Length: 0\r\n\r\n"});
  const Time before = Clock::now();
  const auto words = run(host, {{.down = 600}}, {.resume_window = 300ms}).words;
  CHECK(words.back() ==
        "the connection was lost, and could not be resumed: refused as no_room: HTTP 503");
  CHECK(Clock::now() - before >= 300ms);
  CHECK(host.targets().size() > 2);
}

TEST_CASE("an older service that refuses to resume is asked once") {
  ResumingService host({.resumes = false});
  {
    const ScriptedService service(host);
    Client client(service.url());
    for (int i = 0; i < 2; ++i) {
      ClientStream stream = client.open();
      send_all(stream);
      CHECK(events_of(stream) == Words(all.begin() + 1, all.end()));
    }
  }
  CHECK(host.targets() == Words{"/v1/stream?pipeline=default&resume=1",
                                "/v1/stream?pipeline=default", "/v1/stream?pipeline=default"});
}

TEST_CASE("a client that does not want to resume loses the stream with its connection") {
  ResumingService host({});
  CHECK(run(host, {{.down = 500}}, {.resume = false}).words.back() == "the connection was lost");
  CHECK(host.targets() == Words{"/v1/stream?pipeline=default"});
}

TEST_CASE("a goaway that the service repeats is one event") {
  ResumingService host({.goaway = 5});
  auto words = run(host, {{.down = 1300}}).words;
  CHECK(std::erase(words, "goaway") == 1);
  CHECK(words == all);
  CHECK(host.goaways() == 2);
}

TEST_CASE("a request to resume has what the client has, and an error shows no token") {
  ResumingService host({.refusal = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"});
  const auto words = run(host, {{.down = 1000}}).words;
  CHECK_THAT(words.back(), !Catch::Contains("secret"));
  const auto resumed = parse_stream_target(host.targets().back());
  REQUIRE(resumed.has_value());
  CHECK(resumed->id == "mic");
  REQUIRE(resumed->resumption.has_value());
  CHECK(resumed->resumption->n == words.size() - 2);  // without the open and the error
  CHECK(resumed->resumption->flushed == 3);
  CHECK(resumed->resumption->point.frames + 4 >= resumed->resumption->results);
}

TEST_CASE("the client acknowledges the messages that it has received") {
  ResumingService host({});
  const ScriptedService service(host);
  Client client(service.url());
  ClientStream stream = client.open();
  stream.send(bytes_in("aabb"));
  const Time limit = Clock::now() + patience;
  while (host.acked() < 2 && Clock::now() < limit) std::this_thread::yield();
  CHECK(host.acked() == 2);
}

TEST_CASE("while a stream sends packets, an acknowledgement is sent together with one") {
  ResumingService host({});
  {
    const ScriptedService service(host);
    Client client(service.url());
    ClientStream stream = client.open();
    const Time limit = Clock::now() + patience;
    while (host.acked() == 0 && Clock::now() < limit) {
      stream.send(bytes_in("aa"));
      (void)stream.next();
    }
  }
  CHECK(host.acked_with_input());
}

TEST_CASE("a stream that is closed while it has no connection still delivers its input") {
  ResumingService host({.silent = 2});
  const ScriptedService service(host);
  const CuttingProxy proxy(service.url(), {{.down = 400}});
  Client client(proxy.url());
  ClientStream stream = client.open();
  send_all(stream);
  const Time limit = Clock::now() + patience;
  while (host.connections() < 2 && Clock::now() < limit) std::this_thread::yield();
  stream.close();
  CHECK_THROWS_AS(stream.next(), StreamFailed);
  while (host.how_ended() != 1000 && Clock::now() < limit) std::this_thread::yield();
  CHECK(host.how_ended() == 1000);
}

TEST_CASE("a client can be destroyed while a stream has no connection") {
  ResumingService host({.refusal = "HTTP/1.1 503 Unavailable\r\nContent-Length: 0\r\n\r\n"});
  const ScriptedService service(host);
  const CuttingProxy proxy(service.url(), {{.down = 600}});
  std::optional<Client> client(proxy.url());
  ClientStream stream = client->open();
  send_all(stream);
  auto events = std::async(std::launch::async, [&] { return events_of(stream); });
  const Time limit = Clock::now() + patience;
  while (host.refused() < 3 && Clock::now() < limit) std::this_thread::yield();
  client.reset();
  CHECK(events.get().back() == "the client was closed");
}
