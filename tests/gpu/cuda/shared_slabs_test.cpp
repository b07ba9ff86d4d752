// SPDX-License-Identifier: Apache-2.0
// Slabs of this process that another process reads, on each CUDA device of the machine or of the
// simulation.
#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <sstream>
#include <variant>

#include "base/queue.h"
#include "gpu/cuda/devices.h"
#include "tests/gpu/host/batches.h"
#include "tests/gpu/host/hex.h"
#include "tests/gpu/simulated/program.h"
#include "tests/support/patience.h"
#include "tests/support/skipped.h"

using namespace millrace;
using namespace millrace::test;

namespace {

constexpr RowFormat format{.dtype = Element::f32};
constexpr std::size_t slab_bytes = 65536;

// The reader that is built together with this program: on real or on simulated devices.
std::string name_of_reader() {
  return std::filesystem::read_symlink("/proc/self/exe").filename().string() + "_reader";
}

std::string opening(const std::string& uuid, const DeviceHandles& handles) {
  std::ostringstream line;
  line << "open " << uuid << ' ' << slab_bytes << ' ' << handles.copied.size() << ' '
       << hex_of(handles.memory);
  for (const auto* events : {&handles.copied, &handles.finished})
    for (const DeviceHandle& event : *events) line << ' ' << hex_of(event);
  return line.str();
}

// The tensor that the host writes for the batch, in the reader's notation.
std::string tensor_of(const RandomBatch& batch) {
  const SlabRing scratch(1, slab_bytes);
  const SlabShape shape = batch.write(format, scratch.slab(0));
  return hex_of(scratch.slab(0).first(std::size_t{4} * shape.rows * shape.width));
}

}  // namespace

TEST_CASE("another process reads batches from the slabs, and then the slabs are free") {
  const Devices look(DeviceRule{});
  if (look.usable().empty()) return say_skipped(look.why_none());
  for (const cuda::FoundDevice& found : look.usable()) {
    Devices devices(DeviceRule{});
    const auto device = std::move(*devices.open(found.name));
    Queue<DeviceReport> reports(100);
    const SlabRing ring(2, slab_bytes);
    const auto slabs = device->attach(
        ring, [&](DeviceReport report) { (void)reports.try_push(std::move(report)); });
    if (!slabs->handles()) return say_skipped("device memory cannot be shared here");
    Program reader(name_of_reader());
    REQUIRE(reader.ask(opening(found.uuid, *slabs->handles())) == "opened");
    for (unsigned round = 0; round < 10; ++round) {
      const std::uint32_t slab = round % 2;
      const RandomBatch batch(format, 1 + 7 * round, 40 + 3 * round, round);
      const SlabShape shape = batch.write(device->slab_format(format), ring.slab(slab));
      REQUIRE(slabs->copy(slab, shape) == Copying::under_way);
      std::ostringstream line;
      line << "read " << slab << ' ' << shape.rows << ' ' << shape.marks << ' ' << shape.width;
      CHECK(reader.ask(line.str()) == tensor_of(batch));
      CHECK(reader.ask("leave " + std::to_string(slab)) == "left");
      CHECK(std::holds_alternative<CopyEnded>(reports.pop_until(Clock::now() + patience).value()));
      if (!slabs->give_back(slab))
        CHECK(
            std::holds_alternative<SlabFreed>(reports.pop_until(Clock::now() + patience).value()));
    }
    CHECK(reader.end() == 0);
  }
}
