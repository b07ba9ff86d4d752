// SPDX-License-Identifier: Apache-2.0
// The numbers of its streams that a leaving worker receives.
#include <catch2/catch.hpp>

#include "tests/workers/hub/hub_fixture.h"

using namespace millrace;
using namespace millrace::test;

namespace {

using Streams = std::pair<std::uint32_t, std::uint32_t>;

}  // namespace

TEST_CASE("a worker that has sent Bye receives how many of its streams moved, and how many wait") {
  HubUnderTest h;
  h.open(1);
  h.row(1);
  h.open(2);
  Link& leaves = h.attach();
  Link& other = h.attach();
  CHECK(leaves.streams == Streams{0, 0});
  h.hub.receive(leaves, Bye{});
  CHECK(leaves.streams == Streams{1, 1});  // it has a row of stream 1
  CHECK(other.streams == Streams{0, 0});
  CHECK((h.last_moved.moved == 1 && h.last_moved.waiting == 1));
}

TEST_CASE("the number of streams that wait is sent again when it has changed") {
  HubUnderTest h;
  h.open(1);
  h.row(1);
  h.open(2);
  h.row(2);
  Link& leaves = h.attach();
  h.hub.receive(leaves, Bye{});
  CHECK(leaves.streams == Streams{0, 2});  // there is no other worker
  h.row(2, flag::end);
  for (int i = 0; i < 2; ++i) h.done(leaves, leaves.receive<HandedBatch>().id);
  h.run_until([&] { return leaves.streams == Streams{0, 1}; });
}

TEST_CASE("a worker without streams receives Bye after it has sent Bye") {
  HubUnderTest h;
  Link& leaves = h.attach();
  h.hub.receive(leaves, Bye{});
  CHECK(leaves.streams == Streams{0, 0});
  CHECK_NOTHROW(leaves.receive<Bye>());
}
