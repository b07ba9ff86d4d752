// SPDX-License-Identifier: Apache-2.0
#include "replay/client_messages.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <variant>

#include "base/half.h"

using namespace millrace;
using Kind = Event::Kind;

namespace {

recording::StreamMeta meta_of(FrameType frames, std::string rule = R"({"size":1600})") {
  return {.number = 7,
          .name = "call-7",
          .pipeline = "asr",
          .rule = std::move(rule),
          .frames = frames,
          .options = R"({"lang":"de"})"};
}

}  // namespace

TEST_CASE("a replayed stream has its name and options, and declines to be recorded") {
  const StreamRequest request = request_of(meta_of({.values = 2, .rate = 8000}), {});
  CHECK(request.id == "call-7");
  CHECK(request.pipeline == "asr");
  CHECK(request.options == R"({"lang":"de"})");
  CHECK(request.format == "s16le");
  CHECK(request.rate == 8000);
  CHECK(request.channels == 2u);
  CHECK_FALSE(request.dim);
  CHECK_FALSE(request.chunk);
  CHECK_FALSE(request.record);
}

TEST_CASE("a size that the client had requested is requested again") {
  const char* rule = R"({"size":1600,"first":2000,"sizes":[800,1600],"rule":"adaptive"})";
  const Event size{.kind = Kind::size, .cause = Cause::client, .count = 1200};
  CHECK(request_of(meta_of({}, rule), size).chunk == "800");
  const Event chosen{.kind = Kind::size, .cause = Cause::load, .count = 1200};
  CHECK_FALSE(request_of(meta_of({}, rule), chosen).chunk);
}

TEST_CASE("a client sends the events that the service does not decide") {
  using namespace client_message;
  const auto command = [](Kind kind, Cause cause = Cause::client) {
    return command_of(
        {.event = {.kind = kind, .cause = cause, .count = 4, .mark = 9}, .text = "[{}]"});
  };
  CHECK(std::get<Flush>(*command(Kind::flush)).mark == 9u);
  CHECK(std::holds_alternative<Reset>(*command(Kind::reset)));
  CHECK(std::holds_alternative<End>(*command(Kind::end)));
  CHECK(std::get<Message>(*command(Kind::message)).data == "[{}]");
  CHECK(std::get<Set>(*command(Kind::set)).options == "[{}]");
  for (const Cause cause :
       {Cause::client, Cause::load, Cause::rejected, Cause::connection, Cause::recorder})
    CHECK(std::get<Gap>(*command(Kind::gap, cause)).frames == 4);
  CHECK_FALSE(command(Kind::flush, Cause::endpoint));
  CHECK_FALSE(command(Kind::reset, Cause::endpoint));
  CHECK_FALSE(command(Kind::size, Cause::drawn));
  CHECK_FALSE(command(Kind::open));
  CHECK_FALSE(command(Kind::abort));
}

TEST_CASE("types that clients cannot send are sent as floats") {
  std::vector<std::byte> sent;
  float value = 0;
  SECTION("f16 audio") {
    const FrameType type{.element = Element::f16};
    const std::uint16_t half = float_to_half(0.25f);
    append_for_client(std::as_bytes(std::span(&half, 1)), type, sent);
    CHECK(client_frame_bytes(type) == 4);
    CHECK(request_of(meta_of(type), {}).format == "f32le");
    std::memcpy(&value, sent.data(), sizeof value);
    CHECK(value == 0.25f);
  }
  SECTION("s16 features") {
    const FrameType type{.element = Element::s16, .values = 3, .rate = 100, .features = true};
    const std::int16_t sample = -8192;
    append_for_client(std::as_bytes(std::span(&sample, 1)), type, sent);
    CHECK(client_frame_bytes(type) == 12);
    CHECK(request_of(meta_of(type), {}).dim == 3u);
    std::memcpy(&value, sent.data(), sizeof value);
    CHECK(value == -0.25f);
  }
}
