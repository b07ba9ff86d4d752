// SPDX-License-Identifier: Apache-2.0
// A worker's slabs on a device. The test decides when copies end and when the worker has finished.
#include "workers/feed/worker_slabs.h"

#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "tests/support/bytes.h"

using namespace millrace;
using namespace millrace::test;

namespace {

constexpr BatchShape shape{
    .format = {.frames = Element::s16, .dtype = Element::f32}, .slots = 2, .rows = 2, .width = 3};

// A device that the test controls and observes.
struct Control {
  Copying copying = Copying::under_way;
  bool finished = true;  // the worker's device has finished with a slab when it is given back
  bool gone = false;     // its slabs are destroyed
  bool stopped = false;
  std::vector<std::uint32_t> copied, given_back;
};

class SlabsOfTest : public DeviceSlabs {
 public:
  explicit SlabsOfTest(Control& control) : control_(control) {}
  ~SlabsOfTest() override { control_.gone = true; }
  Copying copy(std::uint32_t slab, const SlabShape&) override {
    control_.copied.push_back(slab);
    return control_.copying;
  }
  bool give_back(std::uint32_t slab) override {
    control_.given_back.push_back(slab);
    return control_.finished;
  }
  void stop() override { control_.stopped = true; }
  const DeviceHandles* handles() const override { return nullptr; }
  bool pinned() const override { return true; }
  std::unique_ptr<DeviceReader> reader(const RowFormat&) override { return nullptr; }

 private:
  Control& control_;
};

class DeviceOfTest : public Device {
 public:
  explicit DeviceOfTest(Control& control) : control_(control) {}
  std::string_view name() const override { return "cuda:0"; }
  std::optional<std::size_t> device_index() const override { return 0; }
  RowFormat slab_format(const RowFormat& tensor) const override { return tensor.unexpanded(); }
  std::unique_ptr<DeviceSlabs> attach(const SlabRing&, DeviceReports) override {
    return std::make_unique<SlabsOfTest>(control_);
  }

 private:
  Control& control_;
};

class FeedUnderTest {
 public:
  Control device;
  std::vector<std::uint32_t> handed;  // slabs, in order
  std::vector<std::int16_t> first;    // the first row in the last slab
  WorkerSlabs slabs{shape, std::make_unique<DeviceOfTest>(device), 2, nullptr};

  // A batch of one row that holds {1, 2}.
  void write() {
    Batch batch;
    batch.rows = 1;
    batch.width = 3;
    batch.closed = Clock::now();
    BatchRow row;
    row.ready.row.size = 2;
    row.ready.window = {Bytes(frames_)};
    batch.framed.push_back(std::move(row));
    const auto* message = slabs.write(batch, {});
    if (!message) return;
    handed.push_back(message->slab);
    first = values_of<std::int16_t>(slabs.ring().slab(message->slab).first(6));
  }

 private:
  std::vector<std::byte> frames_ = bytes_of<std::int16_t>({1, 2});
};

using Slabs = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("a batch is handed over while its copy is under way") {
  FeedUnderTest f;
  f.write();
  CHECK(f.device.copied == Slabs{0});
  CHECK(f.handed == Slabs{0});
}

TEST_CASE("a batch whose copy failed is not handed over") {
  FeedUnderTest f;
  f.device.copying = Copying::failed;
  f.write();
  CHECK(f.handed.empty());
}

TEST_CASE("for a device that expands, slabs hold unconverted frames without padding") {
  FeedUnderTest f;
  std::ranges::fill(f.slabs.ring().memory(), std::byte{0x77});
  f.write();
  CHECK(f.first == std::vector<std::int16_t>{1, 2, 0x7777});
}

TEST_CASE("a slab whose batch was returned before its copy ended is free when the copy has ended") {
  FeedUnderTest f;
  f.write();
  f.write();
  CHECK_FALSE(f.slabs.has_slab());
  f.slabs.finish();
  CHECK_FALSE(f.slabs.has_slab());
  CHECK(f.device.given_back.empty());
  f.slabs.on_copy_ended({.slab = 0, .at = Clock::now()});
  CHECK(f.device.given_back == Slabs{0});
  CHECK(f.slabs.has_slab());
}

TEST_CASE("a slab that the worker's device still reads is free when that reports it") {
  FeedUnderTest f;
  f.device.finished = false;
  f.write();
  f.write();
  f.slabs.on_copy_ended({.slab = 0, .at = Clock::now()});
  f.slabs.finish();
  CHECK_FALSE(f.slabs.has_slab());
  f.slabs.on_slab_freed(0);
  CHECK(f.slabs.has_slab());
  f.write();
  CHECK(f.handed == Slabs{0, 1, 0});
}

TEST_CASE("oldest_copied() is the end of the copy if it is reported, and its begin before that") {
  FeedUnderTest f;
  const Time before = Clock::now();
  f.write();
  f.write();
  const Time written = Clock::now(), copied = written + std::chrono::milliseconds(3);
  f.slabs.on_copy_ended({.slab = 0, .at = copied});
  CHECK(f.slabs.oldest_copied() == copied);
  f.slabs.finish();
  const Time began = f.slabs.oldest_copied();
  CHECK(began >= before);
  CHECK(began <= written);
}

TEST_CASE(
    "after leave_copies_to_worker() the slabs on the host are used, and the device's are gone") {
  FeedUnderTest f;
  f.device.finished = false;
  f.write();
  f.slabs.finish();
  f.write();
  CHECK_FALSE(f.slabs.has_slab());
  auto former = f.slabs.leave_copies_to_worker();
  CHECK_FALSE(f.slabs.has_slab());  // the copies may be in progress
  CHECK_FALSE(f.slabs.device().device_index());
  former.reset();
  f.slabs.on_former_slabs_freed();
  CHECK(f.device.gone);
  CHECK(f.slabs.has_slab());
  f.write();
  CHECK(f.handed == Slabs{0, 1, 0});
  CHECK(f.device.copied == Slabs{0, 1});
  f.slabs.finish();
  CHECK(f.slabs.has_slab());
}

TEST_CASE("stop() stops the slabs of the device") {
  FeedUnderTest f;
  f.slabs.stop();
  CHECK(f.device.stopped);
}
