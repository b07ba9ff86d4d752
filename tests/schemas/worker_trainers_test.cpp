// SPDX-License-Identifier: Apache-2.0
// The fields for trainers in the messages between a server of batches and a trainer.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstddef>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "schemas/worker_codec.h"
#include "tests/schemas/damage.h"
#include "tests/support/golden.h"

using namespace millrace;
using namespace millrace::worker_protocol;

namespace {

constexpr std::size_t max_size = 4 << 20;

const Hello hello{
    .pipeline = "default",
    .name = "rank 3 on host 7",
    .credits = 16,
    .trainer = TrainerHello{.rank = 3, .world = 8, .epoch = 2, .step = 1ULL << 40, .stride = 2}};

const Welcome welcome{.slots = 4,
                      .rows = 4,
                      .width = 1600,
                      .frames = {.element = Element::f32, .values = 1, .rate = 16000},
                      .chunk = R"({"size":1600})",
                      .slabs = 17,
                      .slab_bytes = 1 << 20,
                      .width_buckets = {1600},
                      .plan = R"({"origin":{"digest":"7f"},"steps":120})"};

const std::array<std::byte, 512> tensor{std::byte{1}, std::byte{2}, std::byte{3}};

HandedBatch batch() {
  return {.id = BatchId{7},
          .slab = 2,
          .rows = 2,
          .width = 4,
          .closed = {},
          .copied = {},
          .framed = {{.stream = StreamId{1}, .slot = 1, .size = 3, .flags = 7, .reason = 1}},
          .marks = {},
          .opened = {{.stream = StreamId{1},
                      .slot = 1,
                      .name = "speaker 7/a.wav",
                      .options = R"({"text":"yes"})"}},
          .tensor = tensor,
          .epoch = 2,
          .step = 1ULL << 40,
          .steps = (1ULL << 40) + 1,
          .body = 3,
          .failed = {}};
}

Hello with(const TrainerHello& trainer) {
  Hello changed = hello;
  changed.trainer = trainer;
  return changed;
}

template <class Message>
Result<ToService, WireError> at_server(const Message& message) {
  Encoder encoder;
  return Decoder(max_size).to_service(encoder.encode(message));
}

bool server_refuses(const Hello& message) {
  const auto result = at_server(message);
  return result.has_error() && result.error() == WireError::meaning;
}

bool trainer_refuses(const auto& message) {
  Encoder encoder;
  Decoder decoder(max_size);
  const auto result = decoder.to_worker(encoder.encode(message));
  return result.has_error() && result.error() == WireError::meaning;
}

template <class Change>
bool trainer_refuses_batch(Change change) {
  HandedBatch changed = batch();
  change(changed);
  return trainer_refuses(changed);
}

}  // namespace

TEST_CASE("the position of a trainer is unchanged when it is written and read") {
  CHECK(std::get<Hello>(*at_server(hello)) == hello);
  CHECK(std::get<Hello>(*at_server(with({}))) == with({}));
}

TEST_CASE("a plan is unchanged when it is written and read") {
  Encoder encoder;
  Decoder decoder(max_size);
  CHECK(std::get<Welcome>(*decoder.to_worker(encoder.encode(welcome))) == welcome);
}

TEST_CASE("the step of a batch is unchanged when it is written and read") {
  Encoder encoder;
  Decoder decoder(max_size);
  HandedBatch sent = batch();
  sent.failed = R"([{"stream":1}])";
  const auto result = decoder.to_worker(encoder.encode(sent));
  REQUIRE(result.has_value());
  const auto& got = std::get<HandedBatch>(*result);
  CHECK(got.epoch == 2);
  CHECK(got.step == 1ULL << 40);
  CHECK(got.steps == (1ULL << 40) + 1);
  CHECK(got.body == 3);
  CHECK(got.failed == sent.failed);
  CHECK(got.opened == batch().opened);
  CHECK(std::ranges::equal(got.tensor, tensor));
}

TEST_CASE("a batch of padding is a batch of a plan, and no batch of a pipeline") {
  HandedBatch padding = batch();
  padding.framed.clear();
  CHECK_FALSE(trainer_refuses(padding));
  padding.epoch = padding.step = padding.steps = padding.body = 0;
  padding.opened.clear();
  CHECK(trainer_refuses(padding));
}

TEST_CASE("a refusal keeps its details, which are a JSON object") {
  Encoder encoder;
  Decoder decoder(max_size);
  const Refused refused{.code = "data", .message = "a.wav: no such file", .details = "{}"};
  CHECK(std::get<Refused>(*decoder.to_worker(encoder.encode(refused))) == refused);
  for (const char* details : {"[]", "{", "7"})
    CHECK(trainer_refuses(Refused{.code = "data", .message = "no", .details = details}));
}

TEST_CASE("messages for trainers equal the golden files") {
  Encoder encoder;
  const auto check = [&](const char* name, const auto& message) {
    const Bytes bytes = encoder.encode(message);
    CHECK(copy_of(bytes) == golden(name, bytes));
  };
  check("trainer_hello.bin", hello);
  check("trainer_welcome.bin", welcome);
  check("trainer_batch.bin", batch());
}

TEST_CASE("a trainer with an impossible position is refused for its meaning") {
  CHECK(server_refuses(with({.rank = 8, .world = 8})));
  CHECK(server_refuses(with({.rank = 0, .world = 0})));
  CHECK(server_refuses(with({.world = 1U << 31})));
  CHECK(server_refuses(with({.stride = 0})));
  CHECK(server_refuses(with({.stride = 1ULL << 31})));
  CHECK(server_refuses(with({.epoch = 1ULL << 63})));
  CHECK(server_refuses(with({.step = 1ULL << 63})));
}

TEST_CASE("a trainer neither watches nor leaves for others") {
  Hello changed = hello;
  changed.watch = true;
  CHECK(server_refuses(changed));
  changed = hello;
  changed.alone = true;
  CHECK(server_refuses(changed));
}

TEST_CASE("a Welcome whose plan is no JSON object is refused for its meaning") {
  Welcome changed = welcome;
  for (const char* plan : {"{", "[1]", "7"}) {
    changed.plan = plan;
    CHECK(trainer_refuses(changed));
  }
  changed.plan = R"({"x":")" + std::string(max_plan, 'x') + R"("})";
  CHECK(trainer_refuses(changed));
}

TEST_CASE("a batch at an impossible step is refused for its meaning") {
  CHECK(trainer_refuses_batch([](HandedBatch& b) { b.step = b.steps; }));
  CHECK(trainer_refuses_batch([](HandedBatch& b) { b.steps = 0; }));
  CHECK(trainer_refuses_batch([](HandedBatch& b) { b.steps = 1ULL << 63; }));
  CHECK(trainer_refuses_batch([](HandedBatch& b) { b.epoch = 1ULL << 63; }));
  CHECK(trainer_refuses_batch([](HandedBatch& b) { b.body = 0; }));
  CHECK(trainer_refuses_batch([](HandedBatch& b) { b.body = b.width + 1; }));
}

TEST_CASE("the name of a stream of a plan is any text, up to its limit") {
  CHECK_FALSE(trainer_refuses_batch([](HandedBatch& b) { b.opened[0].name = "\xc3\xa9/a b"; }));
  CHECK(trainer_refuses_batch([](HandedBatch& b) { b.opened[0].name = ""; }));
  CHECK_FALSE(trainer_refuses_batch([](HandedBatch& b) { b.opened[0].name = "gr\xf6"; }));
  CHECK(trainer_refuses_batch(
      [](HandedBatch& b) { b.opened[0].name = std::string(max_catalog_name + 1, 'a'); }));
  const auto meta = [](std::size_t bytes) { return '"' + std::string(bytes - 2, 'x') + '"'; };
  CHECK_FALSE(trainer_refuses_batch([&](HandedBatch& b) { b.opened[0].options = meta(max_meta); }));
  CHECK(trainer_refuses_batch([&](HandedBatch& b) { b.opened[0].options = meta(max_meta + 1); }));
}

TEST_CASE("no damaged message for a trainer is read beyond its end") {
  Encoder encoder;
  Decoder decoder(max_size);
  std::size_t sum = 0;  // reads every text, for the sanitizers
  const auto read = [&](Bytes bytes) {
    if (auto message = decoder.to_worker(bytes)) {
      if (const auto* got = std::get_if<Welcome>(&*message)) sum += got->plan.size();
      if (const auto* got = std::get_if<HandedBatch>(&*message))
        for (const OpenedStream& stream : got->opened) sum += stream.name.size();
    }
    if (auto message = decoder.to_service(bytes))
      if (const auto* got = std::get_if<Hello>(&*message)) sum += got->trainer.has_value();
  };
  for (const auto& message : {copy_of(encoder.encode(hello)), copy_of(encoder.encode(welcome)),
                              copy_of(encoder.encode(batch()))})
    damage(message, read);
  CHECK(sum > 0);
}
