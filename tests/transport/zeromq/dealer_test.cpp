// SPDX-License-Identifier: Apache-2.0
#include "transport/zeromq/dealer.h"

#include <poll.h>

#include <array>
#include <catch2/catch.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <zmq.hpp>

#include "base/time.h"
#include "tests/support/patience.h"
#include "tests/transport/zeromq/peers.h"

using namespace millrace;
using namespace millrace::test;

using namespace std::chrono_literals;
using State = ZeromqDealer::State;

namespace {

constexpr std::size_t max_message = 1 << 20;

// Waits as dealer.h requires.
void run_until(ZeromqDealer& dealer, const auto& happened) {
  const Time guard = Clock::now() + patience;
  while (!happened()) {
    if (Clock::now() > guard) throw std::runtime_error("it does not happen");
    if (dealer.has_events(true, false)) continue;
    std::array<pollfd, 2> waits{pollfd{dealer.descriptors()[0], POLLIN, 0},
                                pollfd{dealer.descriptors()[1], POLLIN, 0}};
    ::poll(waits.data(), waits.size(), 100);
  }
}

bool send(ZeromqDealer& dealer, std::string_view text) {
  return dealer.send(std::as_bytes(std::span(text)));
}

}  // namespace

TEST_CASE("messages that arrived before the end can still be received") {
  RawRouter router;
  ZeromqDealer dealer(router.endpoint(), max_message, 30s);
  run_until(dealer, [&] { return dealer.process_events() == State::connected; });
  REQUIRE(send(dealer, "hello"));
  CHECK(router.receive() == "hello");
  for (int i = 0; i < 200; ++i) router.send(std::to_string(i));
  router.leave();
  run_until(dealer, [&] { return dealer.process_events() == State::ended; });
  CHECK(dealer.has_events(true, true));
  for (int i = 0; i < 200; ++i) {
    const auto message = dealer.receive();
    REQUIRE(message);
    CHECK(message->text() == std::to_string(i));
  }
  CHECK_FALSE(dealer.receive());
  CHECK(dealer.reason() == "the connection was lost");
  CHECK_FALSE(send(dealer, "too late"));
  CHECK_FALSE(dealer.has_events(true, true));
}

TEST_CASE("without a listener the connection ends, and nothing is sent") {
  std::string endpoint;
  {
    const RawRouter gone;
    endpoint = gone.endpoint();
  }
  ZeromqDealer dealer(endpoint, max_message, 30s);
  CHECK_FALSE(send(dealer, "hello"));
  run_until(dealer, [&] { return dealer.process_events() == State::ended; });
  CHECK(dealer.reason() == "no service listens there");
}
