// SPDX-License-Identifier: Apache-2.0
#include "schemas/client_codec.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <limits>
#include <new>
#include <string>
#include <variant>
#include <vector>

#include "tests/schemas/damage.h"
#include "tests/support/allocations.h"
#include "tests/support/golden.h"

using namespace millrace;
using namespace millrace::client_protocol;

namespace {

constexpr std::size_t max_size = 4096;

const std::array<std::byte, 5> payload{std::byte{0}, std::byte{1}, std::byte{2}, std::byte{0xfe},
                                       std::byte{0xff}};

const client_protocol::Result result{.stream = 7,
                                     .seq = 3,
                                     .begin = 4800,
                                     .end = 6400,
                                     .begin_s = 0.3,
                                     .end_s = 0.4,
                                     .flags = 16,
                                     .kind = Answer::Kind::json,
                                     .data = payload};

const Open full_open{.stream = 1ULL << 60,
                     .pipeline = "vad",
                     .id = "mic-7",
                     .format = "f32le",
                     .rate = 12.5,
                     .channels = 2,
                     .dim = 0,
                     .channel = "left",
                     .chunk = "100ms",
                     .options = R"({"lang":"de"})"};

const Frames frames{.stream = 7, .at = 1ULL << 40, .bytes = payload};

const Open resuming_open{.stream = 7,
                         .id = "mic-7",
                         .resume = true,
                         .resume_token = "a.b.c",
                         .n = 58,
                         .place = ResumePoint{40, 64000, 3, 64000, 7},
                         .have = 42,
                         .flushed = 0,
                         .set = R"({"lang":"fr"})"};

const std::array<ToService, 13> to_service{full_open,
                                           Open{.stream = 3, .record = "no"},
                                           Open{.stream = 3, .token = "abc"},
                                           frames,
                                           Flush{.stream = 7, .mark = 0},
                                           Flush{.stream = 7},
                                           Reset{.stream = 7},
                                           Gap{.stream = 7, .frames = 1600},
                                           End{.stream = 7},
                                           Post{.stream = 7, .data = R"({"words":["Hugo"]})"},
                                           SetOptions{.stream = 7, .options = "{}"},
                                           resuming_open,
                                           Received{.stream = 7, .n = max_number}};

const Message worker_message{
    .stream = 7, .number = 2, .seq = 3, .kind = Answer::Kind::bytes, .data = payload};

const Ready resumed_ready{.stream = 7,
                          .id = "mic-7",
                          .pipeline = "vad",
                          .frames = 72000,
                          .frame_bytes = 2,
                          .commands = 3,
                          .keep = 323200,
                          .resume = "a.b.c",
                          .resumed = false};

const std::array<ToClient, 20> to_client{
    result,
    client_protocol::Result{},
    Ready{.stream = 7, .id = "mic-7", .pipeline = "vad", .frames = 0, .frame_bytes = 4},
    Flushed{.stream = 7, .mark = max_number},
    Rejected{.stream = 7, .code = "values", .message = "half a frame", .frames = 2},
    Error{.stream = {}, .code = "schema", .message = "no message"},
    Error{.stream = 0,
          .code = "no_room",
          .message = "come again",
          .parameter = "pipeline",
          .retry_after = std::chrono::milliseconds(1000)},
    Closed{.stream = 7, .frames = 16000, .chunks = 10},
    Credit{.stream = 7, .frames = 80000},
    Goaway{.stream = 7, .retry_after = std::chrono::milliseconds(1000)},
    worker_message,
    Message{},
    client_protocol::Result{.data = payload,
                            .number = MessageNumber{5, ResumePoint{1, 2, 3, 4, 5}}},
    Message{.data = payload, .n = 6},
    resumed_ready,
    Flushed{.stream = 7, .mark = 1, .n = 7, .seq = 41},
    Rejected{.stream = 7, .code = "values", .message = "no", .n = 8},
    Error{.stream = 7, .code = "idle", .message = "silent", .n = 9},
    Closed{.stream = 7, .frames = 1, .chunks = 1, .n = 10},
    Ack{.stream = 7, .place = {40, 64000, 3, 64000, 7}}};

template <class Any>
std::vector<std::byte> bytes_of(const Any& message) {
  Encoder encoder;
  return std::visit([&](const auto& one) { return copy_of(encoder.encode(one)); }, message);
}

template <class One, class Any>
millrace::Result<Any, WireError> read_as(const One& message) {
  static Decoder decoder(max_size);
  static std::vector<std::byte> bytes;  // the returned message has views of it
  bytes = bytes_of(std::variant<One>(message));
  if constexpr (std::is_same_v<Any, ToService>) return decoder.to_service(bytes);
  if constexpr (std::is_same_v<Any, ToClient>) return decoder.to_client(bytes);
}

template <class One>
One to_service_and_back(const One& message) {
  return std::get<One>(*read_as<One, ToService>(message));
}
template <class One>
One to_client_and_back(const One& message) {
  return std::get<One>(*read_as<One, ToClient>(message));
}

// Reads every byte that a message refers to.
int touch(std::string_view text) {
  int sum = 0;
  for (const char c : text) sum += c;
  return sum;
}
int touch(const std::optional<std::string_view>& text) { return text ? touch(*text) : 0; }
int touch(Bytes bytes) {
  int sum = 0;
  for (const std::byte b : bytes) sum += static_cast<int>(b);
  return sum;
}
int touch(const Open& m) {
  return touch(m.pipeline) + touch(m.id) + touch(m.format) + touch(m.channel) + touch(m.chunk) +
         touch(m.options) + touch(m.record) + touch(m.token) + touch(m.resume_token) + touch(m.set);
}
int touch(const Frames& m) { return touch(m.bytes); }
int touch(const client_protocol::Result& m) { return touch(m.data); }
int touch(const Message& m) { return touch(m.data); }
int touch(const Ready& m) { return touch(m.id) + touch(m.pipeline) + touch(m.resume); }
int touch(const Rejected& m) { return touch(m.code) + touch(m.message); }
int touch(const Error& m) { return touch(m.code) + touch(m.message) + touch(m.parameter); }
int touch(const auto&) { return 0; }

}  // namespace

TEST_CASE("the numbers for a client that resumes are read as they are written") {
  const client_protocol::Result numbered{.data = payload,
                                         .number = MessageNumber{5, ResumePoint{1, 2, 3, 4, 5}}};
  CHECK(to_client_and_back(numbered).number == numbered.number);
  CHECK(to_client_and_back(result).number == std::nullopt);
  CHECK(to_client_and_back(Message{.data = payload, .n = 6}).n == 6);
  CHECK(to_client_and_back(Closed{.n = 7}).n == 7u);
  CHECK_FALSE(to_client_and_back(Closed{}).n.has_value());
  const Flushed flushed = to_client_and_back(Flushed{.mark = 1, .n = 0, .seq = 41});
  CHECK(flushed.n == 0u);
  CHECK(flushed.seq == 41);
  CHECK(to_client_and_back(Ack{.stream = 7, .place = {1, 2, 3, 4, 5}}).place ==
        ResumePoint{1, 2, 3, 4, 5});
  CHECK(to_client_and_back(resumed_ready).resumed == false);
  CHECK_FALSE(to_client_and_back(Ready{.id = "a", .pipeline = "b"}).resumed.has_value());
  const Open open = to_service_and_back(resuming_open);
  CHECK(open.resume);
  CHECK(open.resume_token == "a.b.c");
  CHECK(open.n == 58u);
  CHECK(open.place == ResumePoint{40, 64000, 3, 64000, 7});
  CHECK(open.have == 42u);
  CHECK(open.flushed == 0u);
  CHECK(open.set == R"({"lang":"fr"})");
  CHECK_FALSE(to_service_and_back(full_open).place.has_value());
}

TEST_CASE("every message of a client is read by the service as it was written") {
  Decoder decoder(max_size);
  for (const ToService& message : to_service) {
    const auto bytes = bytes_of(message);
    const auto read = decoder.to_service(bytes);
    REQUIRE(read.has_value());
    CHECK(read->index() == message.index());
    CHECK(bytes_of(*read) == bytes);
    CHECK(decoder.to_client(bytes).error() == WireError::unknown);
  }
}

TEST_CASE("every message of the service is read by a client as it was written") {
  Decoder decoder(max_size);
  for (const ToClient& message : to_client) {
    const auto bytes = bytes_of(message);
    const auto read = decoder.to_client(bytes);
    REQUIRE(read.has_value());
    CHECK(read->index() == message.index());
    CHECK(bytes_of(*read) == bytes);
    CHECK(decoder.to_service(bytes).error() == WireError::unknown);
  }
}

TEST_CASE("an absent parameter differs from an empty one") {
  const Open open = to_service_and_back(full_open);
  CHECK(open.rate == 12.5);
  CHECK(open.dim == 0u);
  CHECK(open.options == R"({"lang":"de"})");
  const Open bare = to_service_and_back(Open{.stream = 3, .id = ""});
  CHECK(bare.stream == 3);
  CHECK(bare.id == "");
  CHECK_FALSE(bare.pipeline.has_value());
  CHECK_FALSE(bare.rate.has_value());
  CHECK_FALSE(bare.channels.has_value());
  CHECK_FALSE(to_service_and_back(Flush{.stream = 7}).mark.has_value());
  CHECK(to_service_and_back(Flush{.stream = 7, .mark = 0}).mark == 0u);
}

TEST_CASE("an error without a stream differs from one of stream 0") {
  CHECK_FALSE(to_client_and_back(std::get<Error>(to_client[5])).stream.has_value());
  const Error error = to_client_and_back(std::get<Error>(to_client[6]));
  CHECK(error.stream == 0u);
  CHECK(error.parameter == "pipeline");
  CHECK(error.retry_after == std::chrono::milliseconds(1000));
}

TEST_CASE("positions of more than 32 and of more than 63 bits are read as they were sent") {
  CHECK(to_service_and_back(Frames{.at = 1ULL << 33, .bytes = {}}).at == 1ULL << 33);
  CHECK(to_service_and_back(Frames{.at = ~0ULL, .bytes = {}}).at == ~0ULL);
}

TEST_CASE("the next message of an encoder has no values of the previous one") {
  Encoder encoder;
  (void)encoder.encode(full_open);
  CHECK(copy_of(encoder.encode(Open{.stream = 3})) == bytes_of(ToService(Open{.stream = 3})));
}

TEST_CASE("the client's messages equal the golden files") {
  Encoder encoder;
  const auto check = [&](const char* name, const auto& message) {
    const Bytes bytes = encoder.encode(message);
    CHECK(copy_of(bytes) == golden(name, bytes));
  };
  check("client_open.bin", full_open);
  check("client_frames.bin", frames);
  check("client_result.bin", result);
  check("client_message.bin", worker_message);
  check("client_credit.bin", Credit{.stream = 7, .frames = 80000});
  check("client_post.bin", Post{.stream = 7, .data = R"({"words":["Hugo"]})"});
  check("client_set_options.bin", SetOptions{.stream = 7, .options = R"({"lang":"de"})"});
  check("client_open_resume.bin", resuming_open);
  check("client_ready_resume.bin", resumed_ready);
  check("client_ack.bin", Ack{.stream = 7, .place = {40, 64000, 3, 64000, 7}});
  check("client_received.bin", Received{.stream = 7, .n = 58});
}

TEST_CASE("a message with impossible values is refused for its meaning") {
  const auto refused = [](const auto& message) {
    const auto read = read_as<std::decay_t<decltype(message)>, ToClient>(message);
    return !read && read.error() == WireError::meaning;
  };
  auto backward = result;
  backward.end = 4799;
  CHECK(refused(backward));
  auto nowhen = result;
  nowhen.end_s = std::numeric_limits<double>::quiet_NaN();
  CHECK(refused(nowhen));
  auto silent = result;
  silent.kind = Answer::Kind::none;
  CHECK(refused(silent));
  silent.kind = static_cast<Answer::Kind>(5);
  CHECK(refused(silent));
  auto failed = worker_message;
  failed.kind = Answer::Kind::error;
  CHECK(refused(failed));
  CHECK(refused(Ready{.id = "../etc", .pipeline = "vad"}));
  CHECK(refused(Flushed{.mark = max_number + 1}));
  CHECK(refused(Credit{.frames = max_number + 1}));
  CHECK(refused(Error{.stream = 1, .code = "a\nb", .message = ""}));
  CHECK(refused(Goaway{.retry_after = std::chrono::hours(25)}));
}

TEST_CASE(
    "marks and gaps that no other transport accepts are refused for their "
    "meaning") {
  const auto refused = [](const auto& message) {
    const auto read = read_as<std::decay_t<decltype(message)>, ToService>(message);
    return !read && read.error() == WireError::meaning;
  };
  CHECK(refused(Flush{.mark = max_number + 1}));
  CHECK(refused(Gap{.frames = 0}));
  CHECK(refused(Gap{.frames = max_number + 1}));
  CHECK(refused(Received{.n = max_number + 1}));
  CHECK_FALSE(refused(Gap{.frames = max_number}));
}

TEST_CASE("a message longer than the limit is refused before it is read") {
  const auto bytes = bytes_of(to_service[0]);
  CHECK(Decoder(bytes.size() - 1).to_service(bytes).error() == WireError::too_long);
  CHECK(Decoder(bytes.size()).to_service(bytes).has_value());
}

TEST_CASE("no damaged message from or to a client is read beyond its end") {
  Decoder decoder(max_size);
  int sum = 0;
  const auto read = [&](Bytes bytes) {
    const auto add = [&](const auto& message) { sum += touch(message); };
    if (const auto message = decoder.to_service(bytes)) std::visit(add, *message);
    if (const auto message = decoder.to_client(bytes)) std::visit(add, *message);
  };
  for (const ToService& message : to_service) damage(bytes_of(message), read);
  for (const ToClient& message : to_client) damage(bytes_of(message), read);
  random_messages(bytes_of(to_service[0]), read);
  CHECK(sum != 0);
}

TEST_CASE("after a failed allocation, an encoder encodes the next message like a new one") {
  const std::string text(100'000, 'x');
  const Error error{.stream = 1, .code = "internal", .message = text};
  const auto write = [&](Encoder& encoder) {
    const Bytes bytes = encoder.encode(error);
    return std::vector(bytes.begin(), bytes.end());
  };
  Encoder untroubled;
  const auto expected = write(untroubled);
  bool whole = false;
  for (std::size_t nth = 1; !whole; ++nth) {
    Encoder encoder;
    try {
      const test::FailingAllocation failing(nth);
      (void)encoder.encode(error);
      whole = true;
    } catch (const std::bad_alloc&) {
    }
    CHECK(write(encoder) == expected);
  }
}
