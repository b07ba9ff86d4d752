// SPDX-License-Identifier: Apache-2.0
#include "workers/hub/lost_slabs.h"

#include <catch2/catch.hpp>

#include "gpu/host/host_device.h"
#include "tests/workers/hub/hub_fixture.h"

using namespace millrace;
using namespace millrace::test;

namespace {

constexpr std::uint64_t three_slabs = 3 * 4096;  // slabs of a worker with two credits

}  // namespace

TEST_CASE("the slabs of a lost worker count until its process has ended") {
  HubUnderTest h;
  Link& worker = h.attach();
  SECTION("lost") { h.hub.lost(worker, WorkerFailure::disconnect); }
  SECTION("cut") { h.done(worker, BatchId{7}); }
  h.run();
  CHECK(h.slab_bytes.taken() == three_slabs);
  worker.exit();
  h.run();
  CHECK(h.slab_bytes.taken() == 0);
}

TEST_CASE("if the process has ended before its worker is lost, no slabs are kept") {
  HubUnderTest h;
  Link& worker = h.attach();
  worker.exit();
  h.run();
  CHECK(h.slab_bytes.taken() == three_slabs);
  h.hub.lost(worker, WorkerFailure::disconnect);
  h.run();
  CHECK(h.slab_bytes.taken() == 0);
}

TEST_CASE("the slabs of several lost workers are freed when the process of each ends") {
  HubUnderTest h;
  Link& first = h.attach(1);
  Link& second = h.attach(2);
  Link& third = h.attach(3);
  for (Link* worker : {&first, &second, &third}) h.hub.lost(*worker, WorkerFailure::disconnect);
  CHECK(h.slab_bytes.taken() == (2 + 3 + 4) * 4096);
  second.exit();
  h.run();
  CHECK(h.slab_bytes.taken() == (2 + 4) * 4096);
  first.exit();
  third.exit();
  h.run();
  CHECK(h.slab_bytes.taken() == 0);
}

TEST_CASE("the slabs of a lost worker are not written any more") {
  HubUnderTest h;
  h.open(1);
  h.row(1);
  Link& worker = h.attach();
  const auto batch = worker.receive<HandedBatch>();
  h.hub.lost(worker, WorkerFailure::disconnect);
  Link& next = h.attach();
  h.row(1);
  h.done(next, next.receive<HandedBatch>().id);
  CHECK(values(worker.slabs->bytes().subspan(batch.slab * 4096), 1) ==
        std::vector{100, 101, 102, 0});
  for (const std::uint32_t slab : {1, 2})
    CHECK(values(worker.slabs->bytes().subspan(slab * 4096), 1) == std::vector{0, 0, 0, 0});
}

TEST_CASE("the slabs of a worker that left after Bye are freed at once") {
  HubUnderTest h;
  Link& worker = h.attach();
  h.hub.receive(worker, Bye{});
  (void)worker.receive<Bye>();
  h.await_slabs();
  CHECK(h.slab_bytes.taken() == 0);
}

TEST_CASE("kept slabs are freed with LostSlabs, though the process lives on") {
  net::io_context io;
  Devices devices;
  Budget slab_bytes(three_slabs);
  LaneStats stats;
  const BatchShape shape{.format = {}, .slots = 2, .rows = 4, .width = 4};
  SlabThreads threads(0);
  SlabMaker maker(shape, {devices, slab_bytes, threads}, stats, {});
  Link worker(io.get_executor());
  PeerProcesses known;
  {
    LostSlabs lost(maker);
    auto slabs = std::make_unique<WorkerSlabs>(shape, open_host_device(), 3, nullptr);
    slabs->properties().bytes = Share(slab_bytes, three_slabs);
    lost.keep(std::move(slabs), worker.process(known));
    io.poll();
    CHECK(slab_bytes.taken() == three_slabs);
  }
  CHECK(slab_bytes.taken() == 0);
}
