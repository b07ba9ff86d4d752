// SPDX-License-Identifier: Apache-2.0
#include "schemas/worker_codec.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <limits>
#include <variant>

#include "tests/schemas/damage.h"
#include "tests/support/golden.h"

using namespace millrace;
using namespace millrace::worker_protocol;
using namespace std::string_literals;

namespace {

constexpr std::size_t max_size = 1 << 20;

const Hello hello{.pipeline = "vad", .name = "vad on host 7", .credits = 3, .device = "cuda:0"};

const Welcome welcome{.slots = 64,
                      .rows = 16,
                      .width = 1600,
                      .frames = {.element = Element::f32, .values = 2, .rate = 12.5},
                      .chunk = R"({"size":1600})",
                      .slabs = 3,
                      .slab_bytes = 1 << 20,
                      .width_buckets = {400, 1600}};

// For slabs that are also on the worker's device.
Welcome on_device() {
  const auto handle = [](int of) {
    DeviceHandle bytes;
    bytes.fill(static_cast<std::byte>(of));
    return bytes;
  };
  Welcome copied = welcome;
  copied.slab_element = Element::s16;
  copied.context = 400;
  copied.repeat = true;
  copied.device = DeviceHandles{.memory = handle(1),
                                .copied = {handle(2), handle(3), handle(4)},
                                .finished = {handle(5), handle(6), handle(7)}};
  return copied;
}

const Done done{.batch = BatchId{7},
                .answers = {{Answer::Kind::json, R"({"text":"yes"})"},
                            {Answer::Kind::none, ""},
                            {Answer::Kind::text, "\xc3\xa9"},
                            {Answer::Kind::bytes, "\0\xff"s}},
                .mark_answers = {{Answer::Kind::error, "no memory"}},
                .taken = from_wire(1000),
                .done = from_wire(2000)};

const std::array<std::byte, 24> tensor{std::byte{1}, std::byte{2}, std::byte{3}};

HandedBatch batch() {
  return {.id = BatchId{7},
          .slab = 2,
          .rows = 3,
          .width = 4,
          .trigger = 2,
          .closed = from_wire(5'000'000'000),
          .copied = from_wire(5'000'100'000),
          .framed = {{.stream = StreamId{11},
                      .seq = 0,
                      .begin = 0,
                      .slot = 5,
                      .size = 3,
                      .right = 1,
                      .flags = 7,
                      .reason = 1},
                     {.stream = StreamId{12},
                      .seq = 9,
                      .begin = 1ULL << 40,
                      .gap = 17,
                      .mark = 3,
                      .slot = 6,
                      .left = 1,
                      .size = 2,
                      .flags = 24}},
          .marks = {{.stream = StreamId{12}, .seq = 10, .begin = (1ULL << 40) + 2, .flags = 48}},
          .opened = {{.stream = StreamId{11}, .slot = 5, .name = "mic-7", .options = ""},
                     {.stream = StreamId{12}, .slot = 6, .name = "b", .options = R"({"l":"de"})"}},
          .tensor = tensor,
          .failed = {}};
}

// A message after encoding and decoding.
template <class Message>
Result<ToService, WireError> at_service(const Message& message) {
  Encoder encoder;
  Decoder decoder(max_size);
  return decoder.to_service(encoder.encode(message));
}
template <class Message>
Result<ToWorker, WireError> at_worker(const Message& message) {
  Encoder encoder;
  Decoder decoder(max_size);
  return decoder.to_worker(encoder.encode(message));
}

// True if the message is refused as WireError::meaning after `change`.
template <class Message, class Change>
bool worker_refuses(Message message, Change change) {
  change(message);
  const auto result = at_worker(message);
  return result.has_error() && result.error() == WireError::meaning;
}
template <class Message, class Change>
bool service_refuses(Message message, Change change) {
  change(message);
  const auto result = at_service(message);
  return result.has_error() && result.error() == WireError::meaning;
}

// Reads every byte that a decoded message refers to, for the sanitizers.
std::size_t touch(const std::vector<RowEntry>& rows) {
  std::size_t sum = 0;
  for (const auto& row : rows) sum += row.seq + row.slot + row.flags;
  return sum;
}
std::size_t touch(const ToWorker& message) {
  const auto* handed = std::get_if<HandedBatch>(&message);
  if (!handed) return message.index();
  std::size_t sum = touch(handed->framed) + touch(handed->marks);
  for (const std::byte b : handed->tensor) sum += static_cast<std::size_t>(b);
  for (const auto& stream : handed->opened) sum += stream.name.size() + stream.options.size();
  return sum;
}
std::size_t touch(const ToService& message) {
  const auto* finished = std::get_if<Done>(&message);
  if (!finished) return message.index();
  std::size_t sum = 0;
  for (const auto& answer : finished->answers) sum += answer.data.size();
  return sum;
}

}  // namespace

TEST_CASE("messages to the service are unchanged when they are written and read") {
  CHECK(std::get<Hello>(*at_service(hello)) == hello);
  CHECK(std::get<Done>(*at_service(done)) == done);
  CHECK(std::get<Done>(*at_service(Done{})) == Done{});
  CHECK(std::get<Heartbeat>(*at_service(Heartbeat{})) == Heartbeat{});
  CHECK(std::get<Bye>(*at_service(Bye{})) == Bye{});
  CHECK(std::get<Unmapped>(*at_service(Unmapped{})) == Unmapped{});
}

TEST_CASE("messages to the worker are unchanged when they are written and read") {
  const Refused refused{.code = "conflict", .message = "there is no pipeline vad"};
  CHECK(std::get<Welcome>(*at_worker(welcome)) == welcome);
  CHECK(std::get<Welcome>(*at_worker(on_device())) == on_device());
  CHECK(std::get<Refused>(*at_worker(refused)) == refused);
  const Company company{.workers = 3, .moved = 30, .waiting = 2};
  CHECK(std::get<Company>(*at_worker(company)) == company);
  CHECK(std::get<Heartbeat>(*at_worker(Heartbeat{})) == Heartbeat{});
  CHECK(std::get<Bye>(*at_worker(Bye{})) == Bye{});
}

TEST_CASE(
    "a batch is unchanged when it is written and read, and its tensor is a view of the message") {
  Encoder encoder;
  Decoder decoder(max_size);
  const Bytes message = encoder.encode(batch());
  const auto result = decoder.to_worker(message);
  REQUIRE(result.has_value());
  const auto& got = std::get<HandedBatch>(*result);
  const HandedBatch expected = batch();
  CHECK(got.id == expected.id);
  CHECK(got.slab == 2);
  CHECK(got.rows == 3);
  CHECK(got.width == 4);
  CHECK(got.trigger == 2);
  CHECK(got.closed == expected.closed);
  CHECK(got.copied == expected.copied);
  CHECK(got.framed == expected.framed);
  CHECK(got.marks == expected.marks);
  CHECK(got.opened == expected.opened);
  CHECK(std::ranges::equal(got.tensor, tensor));
  CHECK(got.tensor.data() > message.data());
  CHECK(got.tensor.data() < message.data() + message.size());
}

TEST_CASE("messages equal the golden files") {
  Encoder encoder;
  const auto check = [&](const char* name, const auto& message) {
    const Bytes bytes = encoder.encode(message);
    CHECK(copy_of(bytes) == golden(name, bytes));
  };
  check("worker_hello.bin", hello);
  check("worker_welcome.bin", welcome);
  check("worker_batch.bin", batch());
  check("worker_done.bin", done);
}

TEST_CASE("a batch of ten thousand rows passes the verifier's limits") {
  HandedBatch big = batch();
  big.rows = 10'000;
  big.framed.resize(10'000, big.framed[1]);
  CHECK(std::get<HandedBatch>(*at_worker(big)).framed.size() == 10'000);
  Done answers;
  answers.answers.resize(10'000, {Answer::Kind::text, "yes"});
  CHECK(std::get<Done>(*at_service(answers)) == answers);
}

TEST_CASE("a batch without marker rows, opened streams or tensor is unchanged when read") {
  for (const std::uint64_t rows : {1, 2, 3}) {
    HandedBatch message = batch();
    message.framed.resize(rows, message.framed[0]);
    message.marks.clear();
    message.opened.clear();
    message.tensor = {};
    const auto result = at_worker(message);
    REQUIRE(result.has_value());
    CHECK(std::get<HandedBatch>(*result).framed == message.framed);
    CHECK(std::get<HandedBatch>(*result).marks.empty());
    CHECK(std::get<HandedBatch>(*result).opened.empty());
    CHECK(std::get<HandedBatch>(*result).tensor.empty());
  }
}

TEST_CASE("memory that was given back is used for the next batch") {
  Encoder encoder;
  Decoder decoder(max_size);
  auto first = std::get<HandedBatch>(*decoder.to_worker(encoder.encode(batch())));
  const RowEntry* rows = first.framed.data();
  decoder.reuse(std::move(first));
  const auto second = decoder.to_worker(encoder.encode(batch()));
  CHECK(std::get<HandedBatch>(*second).framed.data() == rows);
  CHECK(std::get<HandedBatch>(*second).framed == batch().framed);
  CHECK(std::get<HandedBatch>(*second).opened == batch().opened);
}

TEST_CASE("each side refuses messages that only the other side may receive") {
  CHECK(at_service(welcome).error() == WireError::unknown);
  CHECK(at_service(batch()).error() == WireError::unknown);
  CHECK(at_worker(hello).error() == WireError::unknown);
  CHECK(at_worker(done).error() == WireError::unknown);
}

TEST_CASE("a message longer than the limit is refused without reading it") {
  Encoder encoder;
  const Bytes message = encoder.encode(hello);
  CHECK(Decoder(message.size() - 1).to_service(message).error() == WireError::too_long);
  CHECK(Decoder(message.size()).to_service(message).has_value());
}

TEST_CASE("an answer with invalid JSON or text becomes an error, and the others stay") {
  Done bad;
  bad.answers = {
      {Answer::Kind::json, "NaN"}, {Answer::Kind::text, "\xff"}, {Answer::Kind::json, "1"}};
  const auto answers = std::get<Done>(*at_service(bad)).answers;
  REQUIRE(answers.size() == 3);
  CHECK(answers[0].kind == Answer::Kind::error);
  CHECK(answers[1].kind == Answer::Kind::error);
  CHECK(answers[2] == bad.answers[2]);
}

TEST_CASE("a Hello with impossible values is refused for its meaning") {
  CHECK(service_refuses(hello, [](Hello& h) { h.credits = 0; }));
  CHECK(service_refuses(hello, [](Hello& h) { h.credits = 1025; }));
  CHECK(service_refuses(hello, [](Hello& h) { h.name = "a\nb"; }));
  CHECK(service_refuses(hello, [](Hello& h) { h.pipeline = std::string(257, 'a'); }));
  CHECK(service_refuses(hello, [](Hello& h) { h.device = "\xff"; }));
  CHECK_FALSE(service_refuses(hello, [](Hello& h) {
    h.watch = true;
    h.credits = 0;
  }));
}

TEST_CASE("a Welcome with impossible values is refused for its meaning") {
  CHECK(worker_refuses(welcome, [](Welcome& w) { w.slots = 0; }));
  CHECK(worker_refuses(welcome, [](Welcome& w) { w.slots = 1U << 31; }));
  CHECK(worker_refuses(welcome, [](Welcome& w) { w.rows = 0; }));
  CHECK(worker_refuses(welcome, [](Welcome& w) { w.width = 0; }));
  CHECK(worker_refuses(welcome, [](Welcome& w) { w.frames.values = 65536; }));
  CHECK(worker_refuses(welcome, [](Welcome& w) { w.frames.element = static_cast<Element>(3); }));
  CHECK(worker_refuses(welcome, [](Welcome& w) { w.frames.rate = 0; }));
  CHECK(worker_refuses(
      welcome, [](Welcome& w) { w.frames.rate = std::numeric_limits<double>::quiet_NaN(); }));
  CHECK(worker_refuses(welcome, [](Welcome& w) { w.chunk = "size=1600"; }));
  CHECK(worker_refuses(welcome, [](Welcome& w) { w.slab_bytes = 1ULL << 62; }));
  CHECK(worker_refuses(welcome, [](Welcome& w) { w.slabs = 1026; }));
  CHECK(worker_refuses(welcome, [](Welcome& w) { w.slab_element = static_cast<Element>(3); }));
  CHECK(worker_refuses(welcome, [](Welcome& w) { w.context = w.width + 1; }));
  for (const std::vector<std::uint32_t>& widths :
       {{}, {0, 1600}, {1600, 1600}, {800}, std::vector<std::uint32_t>(17, 1600)})
    CHECK(worker_refuses(welcome, [&](Welcome& w) { w.width_buckets = widths; }));
  CHECK(worker_refuses(on_device(), [](Welcome& w) { w.device->copied.pop_back(); }));
  CHECK(worker_refuses(on_device(), [](Welcome& w) { w.device->finished.emplace_back(); }));
  CHECK(worker_refuses(on_device(), [](Welcome& w) { w.slabs = 2; }));
}

TEST_CASE("a Done or Refused with impossible values is refused for its meaning") {
  CHECK(service_refuses(done, [](Done& d) { d.answers[0].kind = static_cast<Answer::Kind>(6); }));
  const Refused refused{.code = "conflict", .message = "no"};
  CHECK(worker_refuses(refused, [](Refused& r) { r.message = "a\nb"; }));
  CHECK(worker_refuses(refused, [](Refused& r) { r.code = "\xff"; }));
}

TEST_CASE("a batch with impossible values is refused for its meaning") {
  CHECK(worker_refuses(batch(), [](HandedBatch& b) { b.trigger = 4; }));
  CHECK(worker_refuses(batch(), [](HandedBatch& b) { b.rows = 1; }));
  CHECK(worker_refuses(batch(), [](HandedBatch& b) { b.width = 3; }));
  CHECK(worker_refuses(batch(), [](HandedBatch& b) { b.framed[0].size = 0; }));
  CHECK(worker_refuses(batch(), [](HandedBatch& b) { b.marks[0].size = 1; }));
  CHECK(worker_refuses(batch(), [](HandedBatch& b) { b.framed[0].left = 0xffffffff; }));
  CHECK(worker_refuses(batch(), [](HandedBatch& b) { b.framed[0].flags = 0x87; }));
  CHECK(worker_refuses(batch(), [](HandedBatch& b) { b.framed[0].reason = 8; }));
  CHECK(worker_refuses(batch(), [](HandedBatch& b) { b.framed[0].reason = 0; }));
  CHECK(worker_refuses(batch(), [](HandedBatch& b) { b.framed[1].mark = -2; }));
  CHECK(worker_refuses(batch(), [](HandedBatch& b) { b.framed[1].mark = 1LL << 53; }));
  CHECK(worker_refuses(batch(), [](HandedBatch& b) { b.framed[1].begin = 1ULL << 63; }));
  CHECK(worker_refuses(batch(), [](HandedBatch& b) { b.framed[1].gap = 1ULL << 63; }));
  CHECK(worker_refuses(batch(), [](HandedBatch& b) {  // a left context before the stream
    b.framed[0].left = 1;
    b.framed[0].right = 0;
  }));
  CHECK(worker_refuses(batch(), [](HandedBatch& b) { b.opened[0].name = "../x"; }));
  CHECK(worker_refuses(
      batch(), [](HandedBatch& b) { b.opened[0].options = '"' + std::string(4095, 'x') + '"'; }));
  CHECK(worker_refuses(batch(), [](HandedBatch& b) { b.opened[0].options = "{"; }));
  CHECK(worker_refuses(batch(), [](HandedBatch& b) {
    b.framed.clear();
    b.marks.clear();
  }));
}

TEST_CASE("no damaged message is read beyond its end") {
  Encoder encoder;
  Decoder decoder(max_size);
  std::size_t sum = 0;
  const auto read = [&](Bytes bytes) {
    if (auto message = decoder.to_worker(bytes)) sum += touch(*message);
    if (auto message = decoder.to_service(bytes)) sum += touch(*message);
  };
  for (const auto& message :
       {copy_of(encoder.encode(hello)), copy_of(encoder.encode(welcome)),
        copy_of(encoder.encode(batch())), copy_of(encoder.encode(done)),
        copy_of(encoder.encode(Refused{"a", "b"})), copy_of(encoder.encode(Heartbeat{}))}) {
    damage(message, read);
    random_messages(message, read);
  }
  CHECK(sum > 0);
}
