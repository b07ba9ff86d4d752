// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "tests/gpu/simulated/stage.h"

using namespace millrace::test;
namespace simulated = millrace::test::simulated_cuda;

namespace {

using Stage = SimulatedStage;

// The argument of write_letter(), which appends a letter to a text.
struct Letter {
  std::string* text;
  char letter;
};
void write_letter(void* argument) {
  const auto* letter = static_cast<Letter*>(argument);
  letter->text->push_back(letter->letter);
}

void count_up(void* argument) { ++*static_cast<std::atomic<int>*>(argument); }

}  // namespace

TEST_CASE_METHOD(Stage, "a stream runs its work in order") {
  const cudaStream_t on = stream();
  std::string text;
  std::vector<Letter> letters;
  for (const char letter : std::string("abcdefghij")) letters.push_back({&text, letter});
  for (Letter& letter : letters)
    REQUIRE(cudaLaunchHostFunc(on, write_letter, &letter) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(on) == cudaSuccess);
  CHECK(text == "abcdefghij");
  CHECK(cudaStreamDestroy(on) == cudaSuccess);
}

TEST_CASE_METHOD(Stage, "a stream does not run its work within the call") {
  const cudaStream_t on = stream();
  std::atomic<int> count = 0;
  simulated::hold(on);
  REQUIRE(cudaLaunchHostFunc(on, count_up, &count) == cudaSuccess);
  CHECK(cudaStreamQuery(on) == cudaErrorNotReady);
  CHECK(count == 0);
  simulated::release(on);
  REQUIRE(cudaStreamSynchronize(on) == cudaSuccess);
  CHECK(count == 1);
  CHECK(cudaStreamQuery(on) == cudaSuccess);
}

TEST_CASE_METHOD(Stage, "new device memory is filled with a fixed value") {
  std::byte* const device = memory(3);
  CHECK(text(device, 3) == "\xCD\xCD\xCD");
  REQUIRE(cudaMemset(device, 'x', 2) == cudaSuccess);
  CHECK(text(device, 3) == "xx\xCD");
  CHECK(reinterpret_cast<std::uintptr_t>(device) % 256 == 0);
}

TEST_CASE_METHOD(Stage, "an event passes after the work before it, and not earlier") {
  const cudaStream_t on = stream();
  const cudaEvent_t done = event();
  CHECK(cudaEventQuery(done) == cudaSuccess);  // never recorded
  simulated::hold(on);
  std::atomic<int> count = 0;
  REQUIRE(cudaLaunchHostFunc(on, count_up, &count) == cudaSuccess);
  REQUIRE(cudaEventRecord(done, on) == cudaSuccess);
  CHECK(cudaEventQuery(done) == cudaErrorNotReady);
  CHECK(count == 0);
  simulated::release(on);
  REQUIRE(cudaEventSynchronize(done) == cudaSuccess);
  CHECK(count == 1);
  CHECK(cudaEventQuery(done) == cudaSuccess);
}

TEST_CASE_METHOD(Stage, "a stream that waits for an event continues after it") {
  const cudaStream_t first = stream(), second = stream();
  const cudaEvent_t done = event();
  std::byte* const device = memory(5);
  std::byte* const copy = memory(5);
  simulated::hold(first);
  REQUIRE(cudaMemcpyAsync(device, "hello", 5, cudaMemcpyHostToDevice, first) == cudaSuccess);
  REQUIRE(cudaEventRecord(done, first) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(second, done, 0) == cudaSuccess);
  REQUIRE(cudaMemcpyAsync(copy, device, 5, cudaMemcpyDeviceToDevice, second) == cudaSuccess);
  CHECK(cudaStreamQuery(second) == cudaErrorNotReady);
  simulated::release(first);
  REQUIRE(cudaStreamSynchronize(second) == cudaSuccess);
  CHECK(text(copy, 5) == "hello");
}

TEST_CASE_METHOD(Stage, "a stream waits for the record before its wait, not for a later one") {
  const cudaStream_t first = stream(), second = stream(), third = stream();
  const cudaEvent_t done = event();
  REQUIRE(cudaEventRecord(done, first) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(second, done, 0) == cudaSuccess);
  simulated::hold(third);
  REQUIRE(cudaEventRecord(done, third) == cudaSuccess);
  CHECK(cudaStreamSynchronize(second) == cudaSuccess);
  CHECK(cudaEventQuery(done) == cudaErrorNotReady);
  simulated::release(third);
  CHECK(cudaEventSynchronize(done) == cudaSuccess);
}

TEST_CASE_METHOD(
    Stage,
    "a stream that waits for an earlier record still waits after the event is recorded again") {
  const cudaStream_t first = stream(), second = stream(), waiter = stream();
  const cudaEvent_t done = event();
  simulated::hold(first);
  REQUIRE(cudaEventRecord(done, first) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(waiter, done, 0) == cudaSuccess);
  REQUIRE(cudaEventRecord(done, second) == cudaSuccess);
  REQUIRE(cudaEventSynchronize(done) == cudaSuccess);
  CHECK(cudaStreamQuery(waiter) == cudaErrorNotReady);
  simulated::release(first);
  CHECK(cudaStreamSynchronize(waiter) == cudaSuccess);
}

TEST_CASE_METHOD(Stage, "a wait for an event that was never recorded has no effect") {
  const cudaStream_t first = stream(), second = stream();
  const cudaEvent_t done = event();
  REQUIRE(cudaStreamWaitEvent(second, done, 0) == cudaSuccess);
  simulated::hold(first);
  REQUIRE(cudaEventRecord(done, first) == cudaSuccess);
  CHECK(cudaStreamSynchronize(second) == cudaSuccess);
}

TEST_CASE_METHOD(Stage, "events with timing measure the time between them") {
  const cudaStream_t on = stream();
  const cudaEvent_t begin = event(cudaEventDefault), end = event(cudaEventDefault);
  float ms = -1;
  CHECK(cudaEventElapsedTime(&ms, begin, end) == cudaErrorInvalidResourceHandle);
  REQUIRE(cudaEventRecord(begin, on) == cudaSuccess);
  simulated::hold(on);
  REQUIRE(cudaEventRecord(end, on) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&ms, begin, end) == cudaErrorNotReady);
  simulated::release(on);
  REQUIRE(cudaEventSynchronize(end) == cudaSuccess);
  REQUIRE(cudaEventElapsedTime(&ms, begin, end) == cudaSuccess);
  CHECK(ms >= 0);
  const cudaEvent_t untimed = event();
  REQUIRE(cudaEventRecord(untimed, on) == cudaSuccess);
  REQUIRE(cudaEventSynchronize(untimed) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&ms, begin, untimed) == cudaErrorInvalidResourceHandle);
}

TEST_CASE_METHOD(Stage, "a stream and an event may be destroyed before their work is done") {
  const cudaStream_t on = stream();
  const cudaEvent_t done = event();
  std::atomic<int> count = 0;
  simulated::hold(on);
  REQUIRE(cudaLaunchHostFunc(on, count_up, &count) == cudaSuccess);
  REQUIRE(cudaEventRecord(done, on) == cudaSuccess);
  const cudaStream_t other = stream();
  REQUIRE(cudaStreamWaitEvent(other, done, 0) == cudaSuccess);
  simulated::release(on);
  CHECK(cudaStreamDestroy(on) == cudaSuccess);
  CHECK(cudaEventDestroy(done) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(other) == cudaSuccess);
  CHECK(count == 1);
}

TEST_CASE_METHOD(Stage, "an application may use the built-in streams of a device") {
  std::byte* const device = memory(2);
  REQUIRE(cudaMemsetAsync(device, 'a', 1, cudaStreamLegacy) == cudaSuccess);
  REQUIRE(cudaMemsetAsync(device + 1, 'b', 1, cudaStreamPerThread) == cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(text(device, 2) == "ab");
  CHECK(simulated::count(simulated::Breach::default_stream) == 0);
}
