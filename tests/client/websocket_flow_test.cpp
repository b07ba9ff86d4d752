// SPDX-License-Identifier: Apache-2.0
#include <poll.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <map>
#include <semaphore>

#include "client/client.h"
#include "tests/client/scripted_service.h"
#include "tests/client/stream_texts.h"
#include "tests/support/patience.h"

using namespace millrace;
using namespace millrace::test;
using namespace std::chrono_literals;
using Answered = client_event::Result;

namespace {

// Shared by a test and its service's script, which cannot capture anything.
struct Seen {
  std::counting_semaphore<> ended{0};
  std::atomic<int> how{-1};  // the client's close code; 0 without a close
  std::atomic<int> messages{0};
  std::atomic<bool> read{false};  // set by the test: the script may read

  bool await_end() { return ended.try_acquire_for(patience); }
};
Seen* seen = nullptr;

struct FlowFixture {
  FlowFixture() { seen = &now; }
  Seen now;
};

Task<> note_end(Connection& connection) {
  for (;;) {
    const auto received = co_await connection.receive();
    if (const auto* ended = std::get_if<Connection::Ended>(&received)) {
      seen->how = ended->code;
      seen->ended.release();
      co_return;
    }
    ++seen->messages;
  }
}

Task<> open_and_note(Connection& connection, std::string) {
  co_await send_text(connection, ready);
  co_await note_end(connection);
}

// Reads nothing until the test allows it.
Task<> open_and_wait(Connection& connection, std::string) {
  co_await send_text(connection, ready);
  Timer timer(co_await net::this_coro::executor);
  while (!seen->read) {
    timer.expires_after(1ms);
    co_await timer.async_wait(no_throw);
  }
  co_await note_end(connection);
}

constexpr int many = 20'000;
// Sends more results than socket buffers hold.
Task<> answer_much(Connection& connection, std::string) {
  co_await send_text(connection, ready);
  const std::string text = R"({"type":"result","seq":0,"data":")" + std::string(1000, 'x') + "\"}";
  for (int i = 0; i < many; ++i) {
    if (!co_await connection.send(Connection::Kind::text, text)) break;
    ++seen->messages;
  }
  std::string closed = R"({"type":"closed","frames":0,"chunks":0})";
  co_await send_text(connection, std::move(closed));
  co_await note_end(connection);
}

}  // namespace

TEST_CASE_METHOD(FlowFixture, "sending waits while the service does not read, and then continues") {
  ScriptedService service(&open_and_wait);
  Client client(service.url(), {.unsent = 100'000});
  ClientStream stream = client.open();
  const std::string packet(50'000, 'x');
  int sent = 0;
  while (stream.send_until(bytes_in(packet), Clock::now() + 500ms)) ++sent;
  CHECK_FALSE(stream.try_send(bytes_in(packet)));
  CHECK_FALSE(stream.try_send(client_message::Flush{}));
  now.read = true;
  stream.send(bytes_in(packet));
  CHECK(sent >= 2);
}

TEST_CASE_METHOD(FlowFixture, "the descriptor reports results and free space") {
  ScriptedService service(&open_and_wait);
  Client client(service.url(), {.unsent = 100'000});
  pollfd changed{client.descriptor(), POLLIN, 0};
  const auto await_change = [&](const ClientStream& stream) {
    while (::poll(&changed, 1, 30'000) == 1)
      if (client.changed() == std::vector{stream.number()}) return true;
    return false;
  };
  ClientStream stream = client.start();
  CHECK_FALSE(stream.try_next());
  CHECK(await_change(stream));
  CHECK(std::get<client_event::Opened>(*stream.try_next()).stream == "mic");
  CHECK_FALSE(stream.try_next());

  const std::string packet(50'000, 'x');
  while (stream.send_until(bytes_in(packet), Clock::now() + 50ms)) continue;
  now.read = true;
  CHECK(await_change(stream));
  CHECK(stream.try_send(bytes_in(packet)));
}

TEST_CASE_METHOD(FlowFixture,
                 "if results are not taken, the service is not read, and no result is lost") {
  ScriptedService service(&answer_much);
  Client client(service.url(), {.untaken = 10'000});
  ClientStream stream = client.open();
  int results = 0, before = -1;
  for (Time still = Clock::now(); Clock::now() < still + 200ms; std::this_thread::yield())
    if (std::exchange(before, now.messages) != before) still = Clock::now();
  CHECK(before < many);
  while (auto event = stream.next()) {
    results += std::holds_alternative<Answered>(*event);
  }
  CHECK(results == many);
}

TEST_CASE_METHOD(FlowFixture, "results that are not taken for too long end their stream") {
  ScriptedService service(&answer_much);
  Client client(service.url(), {.untaken = 10'000, .taking = 50ms});
  ClientStream stream = client.open();
  CHECK(now.await_end());
  int results = 0;
  try {
    while (stream.next()) ++results;
    FAIL("it ended well");
  } catch (const StreamFailed& failed) {
    CHECK(failed.code() == "slow_reader");
  }
  CHECK(results == 10);  // 1064 bytes each
  CHECK_THROWS_AS(stream.send(bytes_in("a")), StreamFailed);
}

TEST_CASE_METHOD(FlowFixture, "a stream that is destroyed ends cleanly, after all queued input") {
  ScriptedService service(&open_and_note);
  Client client(service.url());
  {
    ClientStream stream = client.open();
    stream.send(bytes_in("abcd"));
    stream.flush(1);
  }
  CHECK(now.await_end());
  CHECK(now.how == 1000);
  CHECK(now.messages == 2);
}

TEST_CASE_METHOD(FlowFixture, "a stream that is destroyed before it is open ends as well") {
  ScriptedService service(&open_and_note);
  Client client(service.url());
  (void)client.start();
  CHECK(now.await_end());
  CHECK(now.how == 1000);
}

TEST_CASE_METHOD(FlowFixture,
                 "when a client is destroyed, its streams still exist, and fail as lost") {
  ScriptedService service(&open_and_note);
  std::optional<Client> client(service.url());
  ClientStream stream = client->open();
  client.reset();
  CHECK_THROWS_WITH(stream.next(), "the client was closed");
  CHECK_THROWS_AS(stream.send(bytes_in("a")), ConnectionLost);
  CHECK(now.await_end());
}

TEST_CASE_METHOD(FlowFixture, "calls in progress fail as lost when their client is destroyed") {
  ScriptedService service(&open_and_note);
  std::optional<Client> client(service.url());
  ClientStream stream = client->open();
  auto taker = std::async(std::launch::async, [&] { return stream.next(); });
  auto sender = std::async(std::launch::async, [&] {
    for (;;) stream.send(bytes_in("abcd"));
  });
  const Time limit = Clock::now() + patience;
  while (now.messages < 3 && Clock::now() < limit) std::this_thread::yield();
  client.reset();
  CHECK_THROWS_AS(taker.get(), ConnectionLost);
  CHECK_THROWS_AS(sender.get(), ConnectionLost);
}

TEST_CASE_METHOD(FlowFixture,
                 "closing a stream wakes the calls that wait in it, and ends cleanly") {
  ScriptedService service(&open_and_note);
  Client client(service.url());
  ClientStream stream = client.open();
  stream.send(bytes_in("abcd"));
  auto taker = std::async(std::launch::async, [&] { return stream.next(); });
  stream.close();
  CHECK_THROWS_WITH(taker.get(), "closed: the stream was closed");
  CHECK(now.await_end());
  CHECK(now.how == 1000);
  CHECK(now.messages == 1);
}

TEST_CASE_METHOD(FlowFixture, "a client that sends nothing sends keepalives") {
  ScriptedService service(&open_and_note);
  Client client(service.url(), {.keepalive = 1ms});
  const ClientStream stream = client.open();
  const Time limit = Clock::now() + patience;
  while (now.messages < 3 && Clock::now() < limit) std::this_thread::yield();
  CHECK(now.messages >= 3);
}

TEST_CASE_METHOD(FlowFixture,
                 "a service whose host acknowledges nothing and sends nothing is lost") {
  ScriptedService service(&open_and_wait);
  Client client(service.url(), {.silence = 1s});  // longer than a connection may take to open
  ClientStream stream = client.open();
  const auto send_on = [&] {
    for (const std::string packet(50'000, 'x');;) stream.send(bytes_in(packet));
  };
  CHECK_THROWS_WITH(send_on(), Catch::Contains("no longer responds"));
  CHECK_THROWS_AS(stream.next(), ConnectionLost);
  now.read = true;
  CHECK(now.await_end());
}

TEST_CASE_METHOD(FlowFixture, "one thread can send while another waits for results") {
  ScriptedService service(&open_and_note);
  Client client(service.url());
  ClientStream stream = client.open();
  std::jthread sender([&] {
    for (int i = 0; i < 1000; ++i) stream.send(bytes_in("abcd"));
  });
  CHECK_FALSE(stream.next_until(Clock::now() + 20ms));
}
