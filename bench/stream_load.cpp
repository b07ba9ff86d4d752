// SPDX-License-Identifier: Apache-2.0
#include "bench/stream_load.h"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <utility>

#include "transport/client_messages.h"
#include "transport/server_messages.h"
#include "transport/spawn.h"

namespace millrace::bench {

namespace {

using namespace std::chrono_literals;
using net::experimental::awaitable_operators::operator&&;

constexpr std::uint16_t close_normal = 1000;

}  // namespace

StreamLoad::StreamLoad(const Packets& packets, Schedule& schedule)
    : packets_(packets), schedule_(schedule) {
  sent_.packets.resize(schedule.streams());
}

StreamLoad::Sent StreamLoad::run(const ServiceUrl& service, std::function<void()> at_begin,
                                 std::function<void()> at_end) {
  const Executor executor = context_.get_executor();
  spawn(executor, watch(std::move(at_begin), std::move(at_end)));
  for (std::uint32_t i = 0; i < schedule_.streams(); ++i) spawn(executor, stream(service, i));
  context_.run();
  return std::move(sent_);
}

Task<> StreamLoad::stream(ServiceUrl service, std::uint32_t stream) {
  const Executor executor = co_await net::this_coro::executor;
  StreamRequest request{.format = "s16le", .rate = 16'000, .channels = 1};
  auto opened = co_await open_stream(executor, std::move(service), std::move(request));
  co_await all_open();
  if (!opened) co_return broken(opened.error().message);
  const auto connection = std::move(*opened);
  co_await (send(*connection, stream) && receive(*connection, stream));
}

Task<> StreamLoad::send(Connection& connection, std::uint32_t stream) {
  const auto give = [&](std::string_view packet) {
    return connection.send(Connection::Kind::binary, packet, false);
  };
  sent_.packets[stream] = co_await send_paced(packets_, schedule_, stream, give);
  const std::string end = to_json(client_message::End{});
  co_await connection.send(Connection::Kind::text, end, false);
}

Task<> StreamLoad::receive(Connection& connection, std::uint32_t stream) {
  std::uint64_t frames = 0;
  std::string why;
  for (;;) {
    const auto received = co_await connection.receive();
    if (const auto* ended = std::get_if<Connection::Ended>(&received)) {
      if (ended->code != close_normal && why.empty())
        why = "ended with " + std::to_string(ended->code);
      if (frames != sent_.packets[stream] * packet_frames && why.empty())
        why = "not all frames were taken";
      if (!why.empty()) broken(why);
      co_return;
    }
    const auto message = parse_server_message(std::get<Connection::Message>(received).text());
    if (!message) continue;
    if (message->type == ServerMessage::Type::error) why = message->message;
    if (message->type == ServerMessage::Type::closed) frames = message->frames;
  }
}

Task<> StreamLoad::watch(std::function<void()> at_begin, std::function<void()> at_end) {
  co_await all_open();
  Timer timer(context_.get_executor(), schedule_.counted_from());
  co_await timer.async_wait(no_throw);
  at_begin();
  timer.expires_at(schedule_.end());
  co_await timer.async_wait(no_throw);
  at_end();
}

// Returns when every stream and watch() have come here; the last one starts the schedule.
Task<> StreamLoad::all_open() {
  if (++waiting_ <= schedule_.streams()) {
    co_await gate_.async_wait(no_throw);
    co_return;
  }
  schedule_.start(Clock::now() + 200ms);
  gate_.cancel();
}

void StreamLoad::broken(std::string why) {
  ++sent_.broken;
  sent_.why = std::move(why);
}

}  // namespace millrace::bench
