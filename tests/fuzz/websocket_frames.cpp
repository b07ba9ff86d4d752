// SPDX-License-Identifier: Apache-2.0
// The bytes of a WebSocket client, read by our reader and by Beast's: both must give the same
// messages, pongs, closes and errors, except for the closes that docs/internals/decisions/0030-…
// lists. The first two bytes of an input determine the size of the pieces of the rest, and the
// maximum length of a message.
#include <boost/asio/io_context.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/websocket/stream.hpp>

#include "tests/fuzz/seen_frames.h"
#include "tests/fuzz/target.h"
#include "transport/websocket/frame_output.h"
#include "transport/websocket/message_reader.h"

namespace millrace {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
namespace net = boost::asio;
namespace websocket = beast::websocket;
using fuzz::require;
using test::SeenFrames;

struct Input {
  std::string_view bytes;
  std::size_t piece = 1;
  std::size_t longest = 0;
};

// The socket of Beast's stream: returns the input, and records the output.
class Wire {
 public:
  using executor_type = net::io_context::executor_type;

  Wire(net::io_context& context, const Input& input)
      : context_(context), unread_(input.bytes), piece_(input.piece) {}

  executor_type get_executor() { return context_.get_executor(); }

  template <class Buffers>
  std::size_t read_some(const Buffers& to, boost::system::error_code& error) {
    const auto piece = unread_.substr(0, piece_);
    const std::size_t size = net::buffer_copy(to, net::buffer(piece.data(), piece.size()));
    unread_.remove_prefix(size);
    error = size > 0 || net::buffer_size(to) == 0 ? boost::system::error_code()
                                                  : boost::system::error_code(net::error::eof);
    return size;
  }
  template <class Buffers>
  std::size_t write_some(const Buffers& from, boost::system::error_code& error) {
    error = {};
    const std::size_t before = written.size(), size = net::buffer_size(from);
    written.resize(before + size);
    return net::buffer_copy(net::buffer(written) + before, from);
  }
  template <class Buffers>
  std::size_t read_some(const Buffers& to) {
    boost::system::error_code ignored;
    return read_some(to, ignored);
  }
  template <class Buffers>
  std::size_t write_some(const Buffers& from) {
    boost::system::error_code ignored;
    return write_some(from, ignored);
  }

  std::string written;

 private:
  net::io_context& context_;
  std::string_view unread_;
  const std::size_t piece_;
};

// Beast finds this function by argument-dependent lookup.
void teardown(beast::role_type, Wire&, boost::system::error_code& error) { error = {}; }

SeenFrames read_by_beast(const Input& input) {
  net::io_context context{1};
  websocket::stream<Wire, false> stream(context, input);
  stream.read_message_max(input.longest);
  http::request<http::empty_body> request(http::verb::get, "/", 11);
  request.set(http::field::host, "millrace");
  request.set(http::field::upgrade, "websocket");
  request.set(http::field::connection, "upgrade");
  request.set(http::field::sec_websocket_version, "13");
  request.set(http::field::sec_websocket_key, "dGhlIHNhbXBsZSBub25jZQ==");
  boost::system::error_code error;
  stream.accept(request, error);
  stream.next_layer().written.clear();
  SeenFrames seen;
  for (;;) {
    beast::flat_buffer buffer(input.longest + 1024);
    const std::size_t size = stream.read(buffer, error);
    if (error) break;
    seen.messages.push_back((stream.got_text() ? "text " : "binary ") +
                            std::string(static_cast<const char*>(buffer.cdata().data()), size));
  }
  seen.end = test::end_by_beast(error, stream.reason().code);
  seen.frames = test::frames_in(stream.next_layer().written);
  return seen;
}

// One end of a connection without a socket. Answers as WebSocketConnection does.
struct Reader {
  bool take(const MessageReader::Message& message) {
    require(message.bytes.size() <= longest, "a message is not longer than the limit");
    seen.messages.push_back(
        std::string(message.is_text ? "text " : "binary ").append(text_in(message.bytes)));
    return true;
  }
  bool take(const MessageReader::Ping& ping) {
    output.pong(text_in(ping.payload));
    return true;
  }
  bool take(const MessageReader::Pong&) { return true; }
  bool take(const MessageReader::Close& close) {
    output.close(close.code == 1005 ? 1000 : close.code, "");
    seen.end = "closed" + std::to_string(close.code);
    return false;
  }
  bool take(const MessageReader::Fault& fault) {
    output.close(fault.code, "why");
    seen.end = fault.code == 1009 ? "too big" : "protocol";
    return false;
  }

  const std::size_t longest;
  SeenFrames seen{.end = "lost"};
  FrameOutput output{Role::server};
};

SeenFrames read_by_us(const Input& input, std::size_t in_place) {
  Reader end{.longest = input.longest};
  MessageReader reader(Role::server, input.longest, in_place);
  std::string unread;
  bool goes_on = true;
  for (std::size_t at = 0; goes_on && at < input.bytes.size(); at += input.piece) {
    unread += input.bytes.substr(at, input.piece);
    MutableBytes rest = std::as_writable_bytes(std::span(unread));
    while (goes_on) {
      const auto event = reader.next(rest);
      if (!event) break;
      goes_on = std::visit([&](const auto& one) { return end.take(one); }, *event);
    }
    unread = text_in(rest);
  }
  const auto frames = end.output.unwritten()[0];
  end.seen.frames = test::frames_in({static_cast<const char*>(frames.data()), frames.size()});
  return std::move(end.seen);
}

}  // namespace
}  // namespace millrace

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace millrace;
  if (size < 2) return 0;
  const Input input{.bytes = fuzz::text_of(bytes + 2, size - 2),
                    .piece = std::size_t{1} + bytes[0],
                    .longest = 1 + std::size_t{4} * bytes[1]};
  const auto by_beast = read_by_beast(input);
  for (const std::size_t in_place : {std::size_t{0}, std::size_t{100}, input.longest + 14})
    fuzz::require(test::agree(read_by_us(input, in_place), by_beast), "we read what Beast reads");
  return 0;
}
