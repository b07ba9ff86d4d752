// SPDX-License-Identifier: Apache-2.0
#include "workers/hub/mailbox.h"

#include <array>
#include <catch2/catch.hpp>

using namespace millrace;

namespace {

using Value = std::array<char, 1024>;

struct MailboxUnderTest {
  boost::asio::io_context io;
  std::size_t taken = 0;
  Mailbox<Value> box{io, 100'000, [this](std::vector<Value>& some) { taken += some.size(); }};

  void deliver(int values) {
    for (int i = 0; i < values; ++i) box.put(Value{});
    io.restart();
    io.poll();
  }
};

}  // namespace

TEST_CASE("a mailbox frees the memory of a burst when later deliveries are small") {
  MailboxUnderTest m;
  m.deliver(10'000);
  CHECK(m.taken == 10'000);
  CHECK(m.box.storage() >= 10'000);
  for (int i = 0; i < 3; ++i) m.deliver(1);
  CHECK(m.box.storage() <= 512);
  CHECK(m.taken == 10'003);
}

TEST_CASE("a mailbox keeps the memory of a steady load") {
  MailboxUnderTest m;
  for (int i = 0; i < 3; ++i) m.deliver(1000);
  const std::size_t storage = m.box.storage();
  for (int i = 0; i < 3; ++i) m.deliver(500);
  CHECK(m.box.storage() == storage);
}
