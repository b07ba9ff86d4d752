// SPDX-License-Identifier: Apache-2.0
#include "bench/zeromq_router.h"

#include <optional>
#include <variant>

#include "schemas/client_codec.h"

namespace millrace::bench {
namespace {

namespace cp = client_protocol;

constexpr std::size_t longest_command = 1024;
constexpr std::uint64_t all_credit = std::uint64_t{1} << 50;

}  // namespace

DroppingRouter::DroppingRouter() : router_(context_, zmq::socket_type::router) {
  router_.set(zmq::sockopt::rcvhwm, 256);
  router_.set(zmq::sockopt::linger, 0);
  router_.bind("tcp://127.0.0.1:0");
  url_ = router_.get(zmq::sockopt::last_endpoint);
  thread_ = std::jthread([this] { serve(); });
}

DroppingRouter::~DroppingRouter() {
  context_.shutdown();
  thread_.join();
  router_.close();
}

void DroppingRouter::serve() try {
  cp::Decoder decoder(longest_command);
  cp::Encoder encoder;
  zmq::message_t name, body;
  const auto answer = [&](Bytes message) {
    zmq::message_t to;
    to.copy(name);
    (void)router_.send(to, zmq::send_flags::sndmore);
    (void)router_.send(zmq::const_buffer(message.data(), message.size()), zmq::send_flags::none);
  };
  for (;;) {
    (void)router_.recv(name);
    (void)router_.recv(body);
    if (body.size() > longest_command) {
      bytes_ += body.size();
      continue;
    }
    const auto message =
        decoder.to_service({static_cast<const std::byte*>(body.data()), body.size()});
    if (!message) continue;
    if (const auto* open = std::get_if<cp::Open>(&*message)) {
      const std::string id(open->id.value_or("stream"));
      answer(encoder.encode(cp::Ready{
          .stream = open->stream, .id = id, .pipeline = "bench", .frames = 0, .frame_bytes = 2}));
      answer(encoder.encode(cp::Credit{.stream = open->stream, .frames = all_credit}));
    } else if (const auto* end = std::get_if<cp::End>(&*message)) {
      answer(encoder.encode(cp::Closed{.stream = end->stream}));
    }
  }
} catch (const zmq::error_t&) {  // shut down
}

}  // namespace millrace::bench
