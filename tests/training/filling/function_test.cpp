// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <catch2/catch.hpp>
#include <latch>
#include <limits>
#include <stdexcept>

#include "tests/training/filling/loading.h"

using namespace millrace;
using namespace millrace::test;
using training::DataFault;
using training::Loader;
using training::LoaderSettings;
using training::ReadError;
using training::StreamCopy;
using training::StreamFunction;

namespace {

// Adds 100 + epoch + 1000 * copy to every value, and then does what the test adds.
class Function final : public StreamFunction {
 public:
  std::function<Result<void, ReadError>(std::uint64_t stream, Content&)> then;
  std::function<std::uint64_t(std::uint64_t)> new_frames;
  bool change_nothing = false;
  std::atomic<int> calls{0};
  std::array<std::array<std::atomic<int>, 8>, 3> by_stream{};  // calls by epoch and stream

  Result<void, ReadError> change(const StreamCopy& of, Content& content) override {
    ++calls;
    ++by_stream.at(of.epoch).at(of.stream);
    auto values = values_of<std::int16_t>(content.frames);
    for (auto& value : values)
      value = static_cast<std::int16_t>(value + 100 + of.epoch + 1000 * of.copy);
    if (!change_nothing) content.frames = bytes_of(values);
    if (then) return then(of.stream, content);
    return {};
  }
  std::uint64_t frames(const StreamCopy&, std::uint64_t frames) override {
    return new_frames ? new_frames(frames) : frames;
  }
};

LoaderSettings settings_of(std::uint32_t threads) {
  return {.threads = threads, .prefetch = 8, .dtype = Element::s16};
}

std::string failure_of(const Eight& eight, std::shared_ptr<Function> function, DataFault fault) {
  auto loader = eight.loader(settings_of(2), std::move(function));
  for (;;) {
    auto batch = loader.next_until(soon());
    if (!batch) {
      CHECK(batch.error().error.fault == fault);
      CHECK(batch.error().stream == 4);
      return batch.error().error.message;
    }
    REQUIRE(batch->has_value());
    loader.give_back(**batch);
  }
}

}  // namespace

TEST_CASE("rows come from the result of the function, which is called once for each stream") {
  Eight eight;
  for (const std::uint32_t threads : {0, 1, 3}) {
    auto plain = eight.loader(settings_of(threads));
    const auto function = std::make_shared<Function>();
    auto changed = eight.loader(settings_of(threads), function);
    for (std::int16_t epoch = 0; epoch < 2; ++epoch) {
      for (auto& batch : read_epoch(plain)) {
        auto values = values_of<std::int16_t>(batch.tensor);
        for (std::size_t row = 0; row < batch.framed.size(); ++row)
          for (std::uint32_t i = 0; i < batch.framed[row].size; ++i)
            values[row * batch.width + i] =
                static_cast<std::int16_t>(values[row * batch.width + i] + 100 + epoch);
        batch.tensor = bytes_of(values);
        CHECK((next_copy(changed) == batch));
      }
      CHECK_FALSE(next_copy(changed).has_value());
    }
    changed.stop();
    for (const std::size_t epoch : {0, 1})
      for (const auto& calls : function->by_stream[epoch]) CHECK(calls == 1);
  }
}

TEST_CASE("resume in the middle of a stream calls the function again") {
  Eight eight;
  const auto function = std::make_shared<Function>();
  auto loader = eight.loader(settings_of(0), function);
  const auto all = read_epoch(loader);
  loader.seek({0, 1});
  function->calls = 0;
  CHECK((next_copy(loader) == all[1]));
  CHECK(function->calls == 3);
}

TEST_CASE("while a function runs, the rows of other streams are filled") {
  Eight eight;
  // The function of stream 0 returns when stream 2 has been read to its end, five batches later.
  std::atomic<bool> read{false};
  const auto function = std::make_shared<Function>();
  function->then = [&](std::uint64_t stream, StreamFunction::Content&) {
    if (stream == 0) read.wait(false);
    if (stream == 5) read = true;  // follows stream 2 in its slot
    read.notify_all();
    return Result<void, ReadError>();
  };
  auto loader = eight.loader(settings_of(3), function);
  CHECK(next_copy(loader).has_value());
}

TEST_CASE("a loader can be left while a function runs") {
  Eight eight;
  std::latch runs(1), returns(1);
  const auto function = std::make_shared<Function>();
  function->then = [&](std::uint64_t, StreamFunction::Content&) {
    runs.count_down();
    returns.wait();
    return Result<void, ReadError>();
  };
  auto loader = eight.loader(settings_of(1), function);
  CHECK_FALSE(loader.next_until(Time::min())->has_value());  // starts the threads
  runs.wait();
  CHECK_FALSE(loader.stop_until(Time::min()));
  CHECK_FALSE(loader.stop_until(Time::min()));
  returns.count_down();
  CHECK(loader.stop_until(Time::max()));
  CHECK(function->calls == 1);
}

TEST_CASE("a function that fails, or returns another length, is an error at its step") {
  Eight eight;
  const auto function = std::make_shared<Function>();
  const auto failure = [&](DataFault fault, auto of_four) {
    function->then = [=](std::uint64_t stream, StreamFunction::Content& content) {
      return stream == 4 ? of_four(content) : Read();
    };
    return failure_of(eight, function, fault);
  };
  using Content = StreamFunction::Content;
  CHECK(failure(DataFault::function, [](Content&) -> Read {
          return ReadError{DataFault::function, "augment: division by zero"};
        }) == "augment: division by zero");
  CHECK(failure(DataFault::function, [](Content&) -> Read {
          throw std::runtime_error("out of memory");
        }) == "out of memory");
  CHECK(failure(DataFault::length, [](Content& content) -> Read {
          content.frames.pop_back();
          return {};
        }) == "the function returned 18 frames and a part of another; needed: 19");
  CHECK(failure(DataFault::function, [](Content& content) -> Read {
          content.companions.emplace_back();
          return {};
        }) == "the function returned 1 companions; needed: 0");
}

TEST_CASE("a function that announces another length must return it") {
  Eight eight;
  const auto function = std::make_shared<Function>();
  function->new_frames = [](std::uint64_t frames) { return frames == 19 ? 20 : frames; };
  CHECK(failure_of(eight, function, DataFault::length) ==
        "the function returned 19 frames; needed: 20");
  function->new_frames = [](std::uint64_t frames) { return frames == 19 ? 5 : frames; };
  function->then = [](std::uint64_t stream, StreamFunction::Content& content) -> Read {
    if (stream == 4) content.frames.resize(10);
    return {};
  };
  CHECK(failure_of(eight, function, DataFault::length) ==
        "the function gives the stream another length than at the begin of the epoch");
}

TEST_CASE("a function must return finite values") {
  const auto catalog = std::make_shared<MemoryCatalog>(FrameType{.element = Element::f32});
  catalog->add({.frames = bytes_of<float>({1, 2, 3, 4, 5})});
  class Infinite final : public StreamFunction {
    Result<void, ReadError> change(const StreamCopy&, Content& content) override {
      content.frames = bytes_of<float>({1, std::numeric_limits<float>::infinity(), 3, 4, 5});
      return {};
    }
  };
  Loader loader(catalog, std::make_shared<ListedPlan>(*catalog, 1, Spec{.size = 2}), {},
                std::make_shared<Infinite>());
  const auto error = error_of(loader);
  CHECK(error.error.fault == DataFault::function);
  CHECK(error.error.message == "the function returned a value that is NaN or infinite, in frame 1");
}

TEST_CASE("a function gets all frames of a long stream") {
  const auto catalog = std::make_shared<MemoryCatalog>(FrameType{});
  catalog->add_numbered(9'000'000);  // more than are read at once
  const auto function = std::make_shared<Function>();
  function->change_nothing = true;
  bool equal = false;
  function->then = [&](std::uint64_t, StreamFunction::Content& content) {
    equal = content.frames == catalog->streams()[0].frames;
    return Result<void, ReadError>();
  };
  Loader loader(catalog, std::make_shared<ListedPlan>(*catalog, 1, Spec{.size = 1'000'000}),
                settings_of(0), function);
  CHECK(next_copy(loader).has_value());
  CHECK(equal);
}

TEST_CASE("a function does not get values that are not finite") {
  const auto catalog = std::make_shared<MemoryCatalog>(FrameType{.element = Element::f32});
  std::vector<float> values(100'000, 1);
  values[70'000] = std::numeric_limits<float>::quiet_NaN();
  catalog->add({.frames = bytes_of(values)});
  const auto function = std::make_shared<Function>();
  Loader loader(catalog, std::make_shared<ListedPlan>(*catalog, 1, Spec{.size = 2}), {}, function);
  const auto error = error_of(loader);
  CHECK(error.error.fault == DataFault::format);
  CHECK(error.error.message == "a value of frame 70000 is NaN or infinite");
  CHECK(function->calls == 0);
}
