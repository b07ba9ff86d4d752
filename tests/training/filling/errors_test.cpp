// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <latch>
#include <limits>
#include <stdexcept>
#include <thread>

#include "tests/training/filling/loading.h"

using namespace millrace;
using namespace millrace::test;
using training::DataFault;
using training::Loader;
using training::PlanPosition;
using training::ReadError;

namespace {

// The step of the plan in which a stream has the row that begins at `frame`.
std::uint64_t step_of(const Eight& eight, std::uint64_t stream, std::uint64_t frame) {
  const ListedPlan plan(*eight.catalog, 3, eight.spec);
  for (const auto& batch : plan.batches())
    for (const auto& row : batch.framed)
      if (row.stream == stream && row.frame == frame) return batch.step;
  throw std::logic_error("no such row");
}

}  // namespace

TEST_CASE("a stream that cannot be read is an error at its step, and again at the next call") {
  Eight eight;
  eight.catalog->on_read = four_is_damaged;
  const std::uint64_t step = step_of(eight, 4, 8);
  for (const std::uint32_t threads : {0, 1, 3}) {
    auto loader = eight.loader({.threads = threads, .prefetch = 4});
    for (std::uint64_t i = 0; i < step; ++i) REQUIRE(next_copy(loader).has_value());
    for (int i = 0; i < 3; ++i) {
      const auto error = error_of(loader);
      CHECK(error.error.fault == DataFault::read);
      CHECK(error.error.message == "four.wav: damaged");
      CHECK(error.stream == 4);
      CHECK(error.name == "stream 4");
      CHECK(error.epoch == 0);
      CHECK(error.step == step);
      CHECK(loader.position() == PlanPosition{0, step});
    }
    loader.seek({0, step + 5});
    const auto later = next_copy(loader);
    REQUIRE(later.has_value());
    CHECK(later->step == step + 5);
    loader.seek({0, step});
    CHECK(loader.next_until(soon()).has_error());
    CHECK(loader.stats().kept == 0);
  }
}

TEST_CASE("if several rows of a batch fail, the first one is reported") {
  Eight eight;
  eight.catalog->on_open = [](std::uint64_t stream) -> Read {
    return ReadError{DataFault::read, "file " + std::to_string(stream)};
  };
  for (const std::uint32_t threads : {0, 1, 3}) {
    auto loader = eight.loader({.threads = threads});
    CHECK(error_of(loader).error.message == "file 0");
  }
}

TEST_CASE("an exception of a reader comes at its step") {
  Eight eight;
  eight.catalog->on_open = [](std::uint64_t stream) -> Read {
    if (stream == 5) throw std::runtime_error("no memory");
    return {};
  };
  const std::uint64_t step = step_of(eight, 5, 0);
  for (const std::uint32_t threads : {0, 2}) {
    auto loader = eight.loader({.threads = threads});
    for (std::uint64_t i = 0; i < step; ++i) REQUIRE(next_copy(loader).has_value());
    CHECK_THROWS_WITH(loader.next_until(soon()), "no memory");
    CHECK_THROWS_WITH(loader.next_until(soon()), "no memory");
    loader.seek({0, 0});
    CHECK(next_copy(loader).has_value());
  }
}

TEST_CASE("an epoch that cannot be distributed, or planned, is an exception behind its batches") {
  Eight eight;
  for (const std::uint32_t threads : {0, 2})
    for (const auto step : {&ListedPlan::on_epoch, &ListedPlan::on_cursor}) {
      auto plan = std::make_shared<ListedPlan>(*eight.catalog, 3, eight.spec);
      (*plan).*step = [](std::uint64_t epoch) {
        if (epoch == 1) throw std::runtime_error("frames() failed");
      };
      Loader loader(eight.catalog, plan, {.threads = threads});
      CHECK(read_epoch(loader).size() == plan->batches().size());
      CHECK_THROWS_WITH(loader.next_until(soon()), "frames() failed");
      CHECK_THROWS_WITH(loader.next_until(soon()), "frames() failed");
      loader.seek({0, 3});
      CHECK(next_copy(loader).has_value());
    }
}

TEST_CASE("no row is found and not yet written while a stream is opened") {
  // The window of stream 0 changes when stream 1 is opened, as the memory of a file that is cut.
  Eight eight;
  auto loader = eight.loader({.threads = 0});
  const auto expected = next_copy(loader);
  const Bytes frames = eight.catalog->streams()[0].frames;
  const std::vector<std::byte> before(frames.begin(), frames.end());
  auto* const memory = const_cast<std::byte*>(frames.data());
  eight.catalog->on_open = [&](std::uint64_t stream) -> Read {
    if (stream == 0) std::ranges::copy(before, memory);
    if (stream == 1) std::ranges::fill_n(memory, before.size(), std::byte{0x55});
    return {};
  };
  loader.seek({0, 0});
  CHECK((next_copy(loader) == expected));
}

TEST_CASE("a loader ends while its reader blocks, after the call that is under way") {
  Eight eight;
  std::latch blocked(1), release(1);
  std::atomic<int> reads{0};
  eight.catalog->on_read = [&](std::uint64_t, std::uint64_t) -> Read {
    if (++reads == 5) {
      blocked.count_down();
      release.wait();
    }
    return {};
  };
  {
    auto loader = eight.loader({.threads = 1, .prefetch = 8});
    REQUIRE(next_copy(loader).has_value());
    blocked.wait();
    std::jthread releasing([&] { release.count_down(); });
    loader.stop();
    CHECK(eight.catalog->open_readers() == 0);
    CHECK(next_copy(loader).has_value());
  }
  CHECK(eight.catalog->open_readers() == 0);
}

TEST_CASE("no batch before the deadline is no end of the epoch") {
  Eight eight;
  std::latch release(1);
  eight.catalog->on_read = [&](std::uint64_t, std::uint64_t) -> Read {
    release.wait();
    return {};
  };
  auto loader = eight.loader({.threads = 1});
  CHECK_FALSE(loader.next_until(Clock::now())->has_value());
  CHECK_FALSE(loader.at_end());
  CHECK_FALSE(loader.next_until(Clock::now() + std::chrono::milliseconds(1))->has_value());
  CHECK(loader.stats().waited >= std::chrono::milliseconds(1));
  release.count_down();
  CHECK(next_copy(loader).has_value());
}

TEST_CASE("a value that is not finite is an error at its step, with the file and the frame") {
  const auto catalog =
      std::make_shared<MemoryCatalog>(FrameType{.element = Element::f32, .values = 2});
  std::vector<float> values(40, 1);
  values[25] = std::numeric_limits<float>::quiet_NaN();
  catalog->add({.frames = bytes_of(values)});
  for (const bool with_file : {false, true}) {
    catalog->path = with_file ? "a.npy" : "";
    Loader loader(catalog, std::make_shared<ListedPlan>(*catalog, 1, Spec{.size = 5}), {});
    for (int step = 0; step < 2; ++step) REQUIRE(next_copy(loader).has_value());
    const auto error = error_of(loader);
    CHECK(error.step == 2);
    CHECK(error.error.fault == DataFault::format);
    CHECK(error.error.message ==
          std::string(with_file ? "a.npy: " : "") + "a value of frame 12 is NaN or infinite");
  }
}

TEST_CASE("an infinite value of f16 is an error") {
  const auto catalog = std::make_shared<MemoryCatalog>(FrameType{.element = Element::f16});
  std::vector<std::uint16_t> values(8, 0x3c00);  // 1
  values[5] = 0xfc00;                            // minus infinity
  catalog->add({.frames = bytes_of(values)});
  Loader loader(catalog, std::make_shared<ListedPlan>(*catalog, 1, Spec{.size = 4}), {});
  REQUIRE(next_copy(loader).has_value());
  CHECK(error_of(loader).error.message == "a value of frame 5 is NaN or infinite");
}
