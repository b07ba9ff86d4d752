// SPDX-License-Identifier: Apache-2.0
// Loaders on simulated devices that fail.
#include <catch2/catch.hpp>

#include "gpu/host/device_fault.h"
#include "tests/support/simulated_cuda/simulated_cuda.h"
#include "tests/training/filling/loading.h"

using namespace millrace;
using namespace millrace::test;

namespace {

constexpr int out_of_memory = 2;  // value of cudaError_t

struct FreshSimulation {
  FreshSimulation() { simulated_cuda::reset(); }
};

}  // namespace

TEST_CASE_METHOD(FreshSimulation, "a device without memory is an error at the first batch") {
  Eight eight;
  for (const std::uint32_t threads : {0, 2}) {
    auto loader = eight.loader({.threads = threads, .device = "cuda:0"});
    simulated_cuda::fail("cudaMalloc", out_of_memory);
    CHECK_THROWS_AS(loader.next_until(soon()), DeviceFailure);
    CHECK_THROWS_AS(loader.next_until(soon()), DeviceFailure);
    simulated_cuda::fail("cudaMalloc", out_of_memory, 0);
    loader.seek({0, 0});
    auto batch = take(loader);
    REQUIRE(batch.has_value());
    loader.give_back(*batch);
  }
}

TEST_CASE_METHOD(FreshSimulation, "a copy that fails is an error at its batch") {
  Eight eight;
  for (const std::uint32_t threads : {0, 2}) {
    auto loader = eight.loader({.threads = threads, .prefetch = 1, .device = "cuda:0"});
    auto first = take(loader);
    REQUIRE(first.has_value());
    loader.stop();
    simulated_cuda::fail("cudaMemcpyAsync", out_of_memory);
    CHECK_THROWS_AS(loader.next_until(soon()), DeviceFailure);
    CHECK(loader.position() == training::PlanPosition{0, 1});
    simulated_cuda::fail("cudaMemcpyAsync", out_of_memory, 0);
    loader.give_back(*first);
    loader.stop();
    auto second = take(loader);
    REQUIRE(second.has_value());
    CHECK(second->step() == 1);
    loader.give_back(*second);
  }
}

TEST_CASE_METHOD(FreshSimulation, "batches are copied from locked pages, and nothing is leaked") {
  {
    Eight eight;
    auto loader = eight.loader({.threads = 1, .device = "cuda:0"});
    while (auto batch = take(loader)) loader.give_back(*batch);
  }
  CHECK(simulated_cuda::pageable_copies() == 0);
  CHECK(simulated_cuda::leaks().empty());
}
