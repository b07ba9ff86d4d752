// SPDX-License-Identifier: Apache-2.0
// A hub whose workers compute on a simulated device.
#include <catch2/catch.hpp>

#include "tests/support/bytes.h"
#include "tests/support/simulated_cuda/simulated_cuda.h"
#include "tests/workers/hub/hub_fixture.h"

using namespace millrace;
using namespace millrace::test;

namespace {

constexpr int ecc = 214, not_supported = 801, out_of_memory = 2,
              unknown = 999;  // values of cudaError_t

class FreshSimulation {
 protected:
  FreshSimulation() { simulated_cuda::reset(); }
};

// A worker sends Hello as the library does, with the name of its device in this process.
class DeviceHub : FreshSimulation, public HubUnderTest {
 public:
  explicit DeviceHub(Element dtype = Element::s16)
      : HubUnderTest(long_timeouts, {.use = DeviceRule::Use::automatic}, dtype) {}

  Link& attach_on(const std::string& device, std::uint32_t credits = 2) {
    Link& link = connect({.name = "w", .credits = credits, .device = device});
    welcome = link.receive<Welcome>();
    return link;
  }
  // Receives reports until `holds` returns true.
  void until(const auto& holds) { run_until(holds); }

  Welcome welcome;
};

}  // namespace

TEST_CASE("a worker on a device receives handles of its slabs, which hold unconverted frames") {
  DeviceHub h(Element::f32);
  Link& worker = h.attach_on("cuda:1");
  REQUIRE(h.welcome.device);
  CHECK(h.welcome.device->copied.size() == 3);
  CHECK(h.welcome.frames.element == Element::f32);
  CHECK(h.welcome.slab_element == Element::s16);
  h.open(1);
  h.row(1);
  CHECK(values_of<std::int16_t>(worker.slabs->bytes().first(6)) ==
        std::vector<std::int16_t>{100, 101, 102});
}

TEST_CASE("a batch for a device is handed over at once, and its copy counted") {
  DeviceHub h;
  Link& worker = h.attach_on("cuda:0");
  simulated_cuda::hold_copies();
  h.open(1);
  h.row(1);
  const auto batch = worker.receive<HandedBatch>();
  CHECK(rows_of(batch) == "1.0");
  CHECK(h.stats.copies.at(0).copies.value() == 0);
  simulated_cuda::release_copies();
  h.until([&] { return h.stats.copies[0].copies.value() == 1; });
  CHECK(h.stats.copies[0].bytes.value() > 0);
  CHECK(h.stats.copies[1].copies.value() == 0);
  h.done(worker, batch.id, texts({"yes"}));
  CHECK(h.returned() == "1 batched 1.0=yes");
}

TEST_CASE("while copies are slow no batch closes without a slab, and nothing is lost") {
  DeviceHub h;
  Link& worker = h.attach_on("cuda:0", 1);  // two slabs
  simulated_cuda::hold_copies();
  h.open(1);
  for (int i = 0; i < 3; ++i) h.row(1);
  for (int i = 0; i < 2; ++i) h.done(worker, worker.receive<HandedBatch>().id, texts({"yes"}));
  CHECK(worker.idle());
  CHECK(h.stats.slabs.exhausted.value() == 1);
  CHECK(h.stats.slabs.free.value() == 0);
  simulated_cuda::release_copies();
  h.until([&] { return !worker.idle(); });
  const auto third = worker.receive<HandedBatch>();
  CHECK(rows_of(third) == "1.2");
  h.done(worker, third.id, texts({"yes"}));
  CHECK(h.returned() == "1 batched 1.0=yes 1 batched 1.1=yes 1 batched 1.2=yes");
  CHECK(h.stats.slabs.wait.sum() > 0);
}

TEST_CASE("a device that fails ends its workers and is reported, and other workers continue") {
  DeviceHub h;
  Link& lost = h.attach_on("cuda:0");
  h.open(1);
  h.row(1);
  (void)lost.receive<HandedBatch>();
  Link& other = h.attach();
  simulated_cuda::kill_device(ecc);
  h.row(1);  // and its batch does not reach the worker
  h.until([&] { return lost.ended; });
  CHECK(lost.receive<Refused>().code == "stopping");
  REQUIRE(h.lost_devices.size() == 1);
  CHECK(h.lost_devices[0] == "0 ecc");
  CHECK(h.stats.copies[0].faults[DeviceFault::ecc].value() == 1);
  CHECK(rows_of(other.receive<HandedBatch>()) == "1.0R");
}

TEST_CASE("no row fails because copies to a device fail again and again") {
  DeviceHub h;
  h.open(1);
  h.open(2);
  h.row(1);
  h.row(2);
  for (int i = 0; i < 4; ++i) {
    simulated_cuda::fail("cudaMemcpyAsync", out_of_memory, 1);
    Link& worker = h.attach_on("cuda:0");
    h.until([&] { return worker.ended; });
  }
  CHECK(rows_of(h.attach_on("cuda:0").receive<HandedBatch>()) == "1.0R 2.0R");
  CHECK(h.returned() == "1 batched 2 batched");
}

TEST_CASE(
    "a device that fails while its workers are replaced takes both, and streams go elsewhere") {
  DeviceHub h;
  Link& first = h.attach_on("cuda:0");
  h.open(1);
  h.row(1, flag::last);
  const auto last = first.receive<HandedBatch>().id;
  simulated_cuda::hold_copies();
  h.row(1);  // stays at the first worker, while the stream moves
  Link& second = h.attach_on("cuda:0");
  h.hub.receive(first, Bye{});
  h.done(first, last);
  h.hub.receive(second, Bye{});
  Link& other = h.attach();
  h.row(1);
  simulated_cuda::kill_device(ecc);
  simulated_cuda::release_copies();
  h.until([&] { return first.ended && second.ended; });
  CHECK(second.receive<Refused>().code == "stopping");
  const auto again = other.receive<HandedBatch>();
  CHECK(rows_of(again) == "1.1R");
  h.done(other, again.id);
  CHECK(rows_of(other.receive<HandedBatch>()) == "1.2");
}

TEST_CASE("a worker for which a listed device has no memory is refused and may attach again") {
  simulated_cuda::reset();
  HubUnderTest h(HubUnderTest::long_timeouts,
                 {.use = DeviceRule::Use::listed, .listed = {"cuda:0"}});
  simulated_cuda::fail("cudaMalloc", out_of_memory, 1);
  Link& worker = h.connect({.name = "w", .device = "cuda:0"});
  CHECK(worker.receive<Refused>().code == "no_room");
  CHECK(h.slab_bytes.taken() == 0);
  CHECK(h.connect({.name = "w", .device = "cuda:0"}).receive<Welcome>().device);
}

TEST_CASE("an error of a worker's slabs ends no other worker if the device still works") {
  DeviceHub h;
  Link& there = h.attach_on("cuda:0");
  simulated_cuda::fail("cudaMalloc", unknown, 1);
  (void)h.attach_on("cuda:0");
  CHECK_FALSE(h.welcome.device);
  CHECK(h.lines.back() == "worker copies from host memory");
  CHECK(h.stats.copies[0].faults[DeviceFault::lost].value() == 1);
  (void)h.attach_on("cuda:0");
  CHECK(h.welcome.device);
  CHECK_FALSE(there.ended);
  CHECK(h.lost_devices.empty());
}

TEST_CASE("if any device may be used, a device without memory leaves copies to the worker") {
  DeviceHub h;
  simulated_cuda::fail("cudaMalloc", out_of_memory, 1);
  (void)h.attach_on("cuda:0");
  CHECK_FALSE(h.welcome.device);
  CHECK(h.lines.back() == "worker copies from host memory");
}

TEST_CASE("if pages cannot be locked, copies are left to the worker, or it is refused") {
  const bool goes_on = GENERATE(true, false);
  simulated_cuda::reset();
  HubUnderTest h(HubUnderTest::long_timeouts,
                 {.use = DeviceRule::Use::automatic, .pageable = goes_on});
  simulated_cuda::fail("cudaHostRegister", not_supported);
  Link& worker = h.connect({.name = "w", .device = "cuda:0"});
  if (!goes_on) {
    CHECK(worker.receive<Refused>().code == "device");
    return;
  }
  CHECK_FALSE(worker.receive<Welcome>().device);
  CHECK(h.stats.slabs.pageable.value() == 3 * 4096);
  CHECK(h.lines.back() == "worker copies from host memory");
}

TEST_CASE("if the device still works, a copy that fails ends only its worker") {
  DeviceHub h;
  Link& worker = h.attach_on("cuda:0");
  h.open(1);
  simulated_cuda::fail("cudaMemcpyAsync", out_of_memory, 1);
  h.row(1);
  h.until([&] { return worker.ended; });
  CHECK(worker.receive<Refused>().code == "no_room");
  CHECK(h.lost_devices.empty());
  Link& again = h.attach_on("cuda:0");
  CHECK(rows_of(again.receive<HandedBatch>()) == "1.0R");
}

TEST_CASE("if device memory cannot be shared, a worker copies from the slabs on the host") {
  DeviceHub h;
  simulated_cuda::fail("cudaIpcGetMemHandle", not_supported);
  Link& worker = h.attach_on("cuda:0");
  CHECK_FALSE(h.welcome.device);
  h.open(1);
  h.row(1);
  CHECK(values(worker.slabs->bytes(), 1) == std::vector{100, 101, 102, 0});
  CHECK(simulated_cuda::calls("cudaMemcpyAsync") == 0);
}

TEST_CASE("for a worker that cannot open the slabs of its device, no more copies are made there") {
  DeviceHub h;
  Link& worker = h.attach_on("cuda:0");
  h.open(1);
  h.row(1);
  h.hub.receive(worker, Unmapped{});
  const auto copies = simulated_cuda::calls("cudaMemcpyAsync");
  h.done(worker, worker.receive<HandedBatch>().id);
  h.row(1);
  const auto batch = worker.receive<HandedBatch>();
  CHECK(values(worker.slabs->bytes().subspan(batch.slab * h.welcome.slab_bytes), 1) ==
        std::vector{110, 111, 112, 0});
  CHECK(simulated_cuda::calls("cudaMemcpyAsync") == copies);
  CHECK(h.lines.back() == "worker copies from host memory");
  h.hub.receive(worker, Unmapped{});
  CHECK(h.lines.size() == 2);
}

TEST_CASE("the slabs of a worker that left stay on the device until its process has ended") {
  DeviceHub h;
  Link& worker = h.attach_on("cuda:0");
  const auto taken = h.slab_bytes.taken();
  h.hub.receive(worker, Bye{});
  (void)worker.receive<Bye>();
  CHECK(h.slab_bytes.taken() == taken);
  CHECK(simulated_cuda::calls("cudaFree") == 0);
  worker.exit();
  h.until([&] { return h.slab_bytes.taken() == 0; });
  CHECK(simulated_cuda::calls("cudaFree") == 1);
}

TEST_CASE("a watcher receives the tensor that a device makes of bare rows") {
  DeviceHub h(Element::f32);
  Link& watcher = h.watch();
  (void)h.attach_on("cuda:0");
  h.open(1);
  h.row(1);
  CHECK(values_of<float>(watcher.receive<HandedBatch>().tensor) ==
        std::vector{100 / 32768.f, 101 / 32768.f, 102 / 32768.f, 0.f});
}

TEST_CASE("a device that hangs delays neither streams nor workers that compute elsewhere") {
  DeviceHub h;
  Link& worker = h.attach_on("cuda:0");
  const auto taken = h.slab_bytes.taken();
  h.open(1);
  simulated_cuda::hold_copies();
  h.row(1);
  SECTION("and is lost") {
    h.hub.lost(worker, WorkerFailure::timeout);
    worker.exit();
  }
  SECTION("and cannot open its slabs") {
    h.hub.receive(worker, Unmapped{});
    h.hub.lost(worker, WorkerFailure::timeout);
    worker.exit();
  }
  h.run();
  Link& other = h.attach();
  h.row(1);
  const auto again = other.receive<HandedBatch>();
  CHECK(rows_of(again) == "1.0R");
  h.done(other, again.id);
  CHECK(rows_of(other.receive<HandedBatch>()) == "1.1");
  CHECK(simulated_cuda::calls("cudaFree") == 0);
  CHECK(h.slab_bytes.taken() >= taken);
  simulated_cuda::release_copies();
  h.until([&] { return h.slab_bytes.taken() == 3 * 4096; });
  CHECK(simulated_cuda::calls("cudaFree") == 1);
}
