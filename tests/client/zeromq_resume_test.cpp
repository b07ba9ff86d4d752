// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <future>
#include <optional>

#include "client/client.h"
#include "tests/client/cutting_proxy.h"
#include "tests/client/resumed_stream.h"
#include "tests/client/resuming_router.h"
#include "tests/support/patience.h"

using namespace millrace;
using namespace millrace::test;
using namespace std::chrono_literals;

namespace {

// Bytes after which a client has certainly received Ready, or the service Open.
constexpr std::size_t opened = 450;

// Streams all over a connection that is cut.
Outcome run(const ResumingRouter& service, std::vector<CuttingProxy::Cut> cuts,
            const ClientSettings& settings = {}) {
  const CuttingProxy proxy(service.url(), std::move(cuts));
  Client client(proxy.url("tcp"), settings);
  ClientStream stream = client.start();
  send_all(stream);
  Outcome outcome{.words = events_of(stream)};
  outcome.resumed = std::erase(outcome.words, "resumed");
  return outcome;
}

// Half a frame is rejected again if its connection was lost before the next message.
Words without_repeated(Words words) {
  words.erase(std::unique(words.begin(), words.end()), words.end());
  return words;
}

template <class Condition>
bool await(Condition condition) {
  const Time limit = Clock::now() + patience;
  while (!condition() && Clock::now() < limit) std::this_thread::yield();
  return condition();
}

}  // namespace

TEST_CASE("a stream over ZeroMQ whose connection is not lost is as without resuming") {
  ResumingRouter service({});
  const auto [words, resumed] = run(service, {});
  CHECK(words == all);
  CHECK(resumed == 0);
  CHECK(service.problems().empty());
}

TEST_CASE("wherever a ZeroMQ connection to the client is cut, each result is received once") {
  for (std::size_t bytes = opened; bytes < 2800; bytes += 31) {
    CAPTURE(bytes);
    ResumingRouter service({});
    const auto [words, resumed] = run(service, {{.down = bytes}});
    CHECK(without_repeated(words) == all);
    CHECK(resumed == service.opened() - 1);
    CHECK(service.problems().empty());
  }
}

TEST_CASE(
    "wherever a ZeroMQ connection to the service is cut, each frame is sent until it arrives") {
  for (std::size_t bytes = opened; bytes < 1800; bytes += 17) {
    CAPTURE(bytes);
    ResumingRouter service({});
    CHECK(without_repeated(run(service, {{.up = bytes}}).words) == all);
    CHECK(service.problems().empty());
  }
}

TEST_CASE("a stream over ZeroMQ survives many losses, also those before the service has answered") {
  for (std::size_t bytes = opened; bytes < 1500; bytes += 97) {
    CAPTURE(bytes);
    ResumingRouter service({});
    const auto [words, resumed] =
        run(service, {{.down = bytes}, {.down = 30}, {.down = 200}, {.up = 700}, {.down = bytes}});
    CHECK(without_repeated(words) == all);
    CHECK(service.problems().empty());
  }
}

TEST_CASE("if a service over ZeroMQ has lost the stream, it is opened anew") {
  for (std::size_t bytes = opened; bytes < 2400; bytes += 61) {
    CAPTURE(bytes);
    ResumingRouter service({.forgets = true});
    auto words = run(service, {{.down = bytes}}).words;
    CHECK(static_cast<int>(std::erase(words, "anew")) == service.opened() - 1);
    auto results = all;
    for (auto* list : {&words, &results})  // those of repeated rows are repeated
      std::erase_if(*list, [](const auto& word) {
        return word.starts_with("message") || word.starts_with("rejected");
      });
    CHECK(words == results);
    CHECK(service.problems().empty());
  }
}

TEST_CASE("the streams of a lost ZeroMQ connection continue together over the next one") {
  ResumingRouter service({});
  const CuttingProxy proxy(service.url(), {{.down = 9000}});
  Client client(proxy.url("tcp"));
  std::vector<ClientStream> streams;
  for (int i = 0; i < 20; ++i) streams.push_back(client.open({.id = "mic-" + std::to_string(i)}));
  for (ClientStream& stream : streams) send_all(stream);
  long resumed = 0;
  for (ClientStream& stream : streams) {
    auto words = events_of(stream);
    resumed += std::erase(words, "resumed");
    CHECK(words == Words(all.begin() + 1, all.end()));
  }
  CHECK(resumed > 10);  // some may be over before
  CHECK(proxy.connections() == 2);
  CHECK(service.problems().empty());
}

TEST_CASE("sending over ZeroMQ waits if the service acknowledges too little") {
  ResumingRouter service({.keep = 4, .lag = 2});
  CHECK(without_repeated(run(service, {{.down = 1100}, {.down = 1100}}).words) == all);
  CHECK(service.problems().empty());
}

TEST_CASE("a stream over ZeroMQ that is held up survives losses of its connection") {
  ResumingRouter service({});
  CHECK(without_repeated(run(service, {{.down = 1100}, {.down = 1100}}, {.untaken = 100}).words) ==
        all);
}

TEST_CASE("a service over ZeroMQ that does not answer is asked over another connection") {
  ResumingRouter service({.silent = 2});
  const auto words = run(service, {{.down = 1100}}, {.resume_window = 1500ms}).words;
  CHECK(words == all);
  CHECK(service.opened() == 4);
}

TEST_CASE("after a ZeroMQ message with a wrong number the stream is resumed, but not forever") {
  ResumingRouter service({.wrong = 2});
  CHECK(without_repeated(run(service, {}).words) == all);
  ResumingRouter broken({.wrong = 1000});
  const auto words = run(broken, {}, {.resume_window = 200ms}).words;
  CHECK(words.back().starts_with("the service sent an invalid message"));
}

TEST_CASE("a stream that a service over ZeroMQ no longer has is lost at once") {
  ResumingRouter service({.refusal = "unknown_stream"});
  const auto words = run(service, {{.down = 1100}}).words;
  CHECK_THAT(words.back(),
             Catch::EndsWith("the connection was lost, and the service no longer has the stream: "
                             "refused as unknown_stream: no"));
  CHECK(service.opened() == 2);
}

TEST_CASE("a conflict over ZeroMQ is tried once more") {
  ResumingRouter service({.refusal = "conflict", .refusals = 1});
  CHECK(run(service, {{.down = 1100}}).words == all);
  ResumingRouter taken({.refusal = "conflict"});
  CHECK_THAT(run(taken, {{.down = 1100}}).words.back(), Catch::Contains("refused as conflict"));
  CHECK(taken.refused() == 2);
}

TEST_CASE("a stream over ZeroMQ that cannot be resumed within the window is lost") {
  ResumingRouter service({.refusal = "no_room"});
  const Time before = Clock::now();
  const auto words = run(service, {{.down = 1100}}, {.resume_window = 300ms}).words;
  CHECK_THAT(words.back(), Catch::EndsWith("could not be resumed: refused as no_room: no"));
  CHECK(Clock::now() - before >= 300ms);
  CHECK(service.refused() > 2);
}

TEST_CASE("a service that comes back on its port continues the stream, until the window is over") {
  std::optional<ResumingRouter> service(std::in_place, ResumingRouter::Options{.lag = 0});
  const std::uint16_t port = service->port();
  Client client(service->url());
  ClientStream stream = client.open();
  stream.send(bytes_in("aabb"));
  CHECK(std::visit(EventInWords(), *stream.next()) == "0 aa");
  CHECK(std::visit(EventInWords(), *stream.next()) == "1 bb");
  service.reset();
  stream.send(bytes_in("cc"));
  service.emplace(ResumingRouter::Options{.forgets = true}, port);
  stream.end();
  CHECK(events_of(stream) == Words{"anew", "2 cc", "closed 3"});

  Client impatient(service->url(), {.resume_window = 200ms});
  ClientStream lost = impatient.open();
  service.reset();
  CHECK_THAT(events_of(lost).back(), Catch::Contains("could not be resumed: 127.0.0.1:"));
}

TEST_CASE("a service over ZeroMQ that refuses to resume is asked once") {
  ResumingRouter service({.resumes = false});
  Client client(service.url());
  for (int i = 0; i < 2; ++i) {
    ClientStream stream = client.open();
    send_all(stream);
    CHECK(events_of(stream) == Words(all.begin() + 1, all.end()));
  }
  CHECK(service.opened() == 3);
  CHECK(service.plain() == 2);
}

TEST_CASE("a stream of an older service over ZeroMQ is lost with its connection") {
  ResumingRouter service({.knows_resume = false});
  CHECK(run(service, {}).words == all);
  ResumingRouter cut({.knows_resume = false});
  CHECK_THAT(run(cut, {{.down = 1100}}).words.back(), Catch::EndsWith("the connection was lost"));
  CHECK(cut.opened() == 1);
}

TEST_CASE("a client over ZeroMQ that does not want to resume loses the stream") {
  ResumingRouter service({});
  const auto words = run(service, {{.down = 1100}}, {.resume = false}).words;
  CHECK_THAT(words.back(), Catch::EndsWith("the connection was lost"));
  CHECK(service.plain() == 1);
}

TEST_CASE("a client acknowledges what it has received over ZeroMQ, and the last message") {
  ResumingRouter service({});
  Client client(service.url());
  ClientStream stream = client.open();
  stream.send(bytes_in("aabb"));
  CHECK(await([&] { return service.acked() == 2; }));
  stream.end();
  CHECK(events_of(stream).back() == "closed 2");
  CHECK(await([&] { return service.finished() == 1; }));
  CHECK(service.problems().empty());
}

TEST_CASE("a stream over ZeroMQ that is closed without a connection still delivers its input") {
  ResumingRouter service({.refusal = "no_room", .refusals = 2});
  const CuttingProxy proxy(service.url(), {{.down = 700}});
  Client client(proxy.url("tcp"));
  ClientStream stream = client.open();
  send_all(stream);
  stream.close();
  CHECK_THROWS_AS(stream.next(), StreamFailed);
  CHECK(await([&] { return service.finished() == 1; }));
}

TEST_CASE("a client can be destroyed while its streams over ZeroMQ have no connection") {
  ResumingRouter service({.refusal = "no_room"});
  const CuttingProxy proxy(service.url(), {{.down = 1100}});
  std::optional<Client> client(proxy.url("tcp"));
  ClientStream stream = client->open();
  send_all(stream);
  auto events = std::async(std::launch::async, [&] { return events_of(stream); });
  CHECK(await([&] { return service.refused() > 2; }));
  client.reset();
  CHECK(events.get().back() == "the client was closed");
}
