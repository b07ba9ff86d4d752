// SPDX-License-Identifier: Apache-2.0
#include "transport/websocket/client.h"

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <boost/beast/http/string_body.hpp>
#include <charconv>
#include <utility>

#include "transport/net/limits.h"
#include "transport/net/tls/socket_io.h"
#include "transport/websocket/handshake.h"
#include "transport/websocket/stream_target.h"
#include "transport/websocket/websocket_connection.h"

namespace millrace {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;

// Reads a server's answer to an upgrade as it arrives.
class UpgradeAnswer {
 public:
  // `accept` is the only valid Sec-WebSocket-Accept.
  explicit UpgradeAnswer(std::string accept) : buffer_(longest), accept_(std::move(accept)) {
    parser_.header_limit(longest_header);
    parser_.body_limit(longest);
  }

  net::mutable_buffer space() { return buffer_.prepare(at_once); }
  // Parses the first `size` bytes of space(), or the end of the connection.
  void add(std::size_t size, boost::system::error_code ended);
  bool is_complete() const { return failure_ || parser_.is_done(); }

  // Nullopt if the WebSocket is open.
  std::optional<ConnectError> refusal() const;
  // The bytes after the answer.
  std::string rest() const {
    const auto bytes = buffer_.cdata();
    return {static_cast<const char*>(bytes.data()), bytes.size()};
  }

 private:
  static constexpr std::uint32_t longest_header = 8 * 1024;
  static constexpr std::size_t longest = 64 * 1024;
  static constexpr std::size_t at_once = 2048;

  std::string_view wrong_field() const;

  beast::flat_buffer buffer_;
  const std::string accept_;
  http::response_parser<http::string_body> parser_;
  boost::system::error_code failure_;
};

void UpgradeAnswer::add(std::size_t size, boost::system::error_code ended) {
  buffer_.commit(size);
  boost::system::error_code error;
  while (buffer_.size() > 0 && !parser_.is_done() && !error)
    buffer_.consume(parser_.put(buffer_.data(), error));
  if (error == http::error::need_more) error = {};
  if (ended == net::error::eof && parser_.got_some() && !error && !parser_.is_done())
    parser_.put_eof(error);
  if (!error && !parser_.is_done() && buffer_.size() + at_once > longest)
    error = http::error::buffer_overflow;
  failure_ = error ? error : parser_.is_done() ? boost::system::error_code() : ended;
}

// The name of the first field that is missing or wrong in an answer that opens the WebSocket (RFC
// 6455, 4.1); empty if all are right.
std::string_view UpgradeAnswer::wrong_field() const {
  const auto& answer = parser_.get();
  const auto only = [&](http::field name) {
    return answer.count(name) == 1 ? answer[name] : beast::string_view();
  };
  const auto [first, last] = answer.equal_range(http::field::connection);
  const auto upgrades = [](const auto& field) {
    return http::token_list(field.value()).exists("upgrade");
  };
  if (!beast::iequals(only(http::field::upgrade), "websocket")) return "Upgrade";
  if (std::none_of(first, last, upgrades)) return "Connection";
  if (only(http::field::sec_websocket_accept) != accept_) return "Sec-WebSocket-Accept";
  if (answer.count(http::field::sec_websocket_extensions) > 0) return "Sec-WebSocket-Extensions";
  if (answer.count(http::field::sec_websocket_protocol) > 0 &&
      only(http::field::sec_websocket_protocol) != subprotocol)
    return "Sec-WebSocket-Protocol";
  return {};
}

std::optional<ConnectError> UpgradeAnswer::refusal() const {
  if (failure_ == http::error::header_limit || failure_ == http::error::body_limit ||
      failure_ == http::error::buffer_overflow)
    return ConnectError{.message =
                            "the answer is too long: more than 8 KiB of header, or 64 KiB of body"};
  const bool of_parser =
      failure_.category() == make_error_code(http::error::bad_version).category();
  if (of_parser && failure_ != http::error::partial_message)
    return ConnectError{.message =
                            "the answer is not HTTP; for the ZeroMQ port, use a URL that begins "
                            "with tcp://, for a port "
                            "with TLS wss://"};
  if (failure_) return ConnectError{.message = failure_.message()};
  const auto& answer = parser_.get();
  if (answer.result() == http::status::switching_protocols) {
    const auto wrong = wrong_field();
    if (wrong.empty()) return std::nullopt;
    return ConnectError{.message =
                            "the answer to the WebSocket upgrade has a missing or wrong field: " +
                            std::string(wrong)};
  }
  ConnectError refused{.status = answer.result_int(), .message = answer.body()};
  const auto field = answer[http::field::retry_after];
  std::uint32_t seconds = 0;  // Retry-After may also be a date, but our service does not send that
  const auto [end, wrong] = std::from_chars(field.begin(), field.end(), seconds);
  if (wrong == std::errc() && end == field.end())
    refused.retry_after = std::chrono::seconds(seconds);
  return refused;
}

std::string reason_of(const StreamSocket& socket, error_code error) {
  return socket.tls() && !socket.tls()->failure().empty() ? socket.tls()->failure()
                                                          : error.message();
}

}  // namespace

Task<Result<std::unique_ptr<Connection>, ConnectError>> open_stream(Executor executor,
                                                                    CheckedAccess access,
                                                                    StreamRequest request) {
  const ServiceUrl& url = access.url();
  Resolver resolver(executor);
  const auto [unknown, endpoints] = co_await resolver.async_resolve(url.host, url.port, no_throw);
  if (unknown) co_return ConnectError{.message = url.host + ": " + unknown.message()};
  Socket tcp(executor);
  const auto [error, endpoint] = co_await net::async_connect(tcp, endpoints, no_throw);
  const std::string address = url.host + ":" + url.port + ": ";
  if (error) co_return ConnectError{.message = address + error.message()};
  tcp.set_option(Tcp::no_delay(true));

  auto tls = access.tls(tcp.native_handle());
  StreamSocket socket(std::move(tcp), std::move(tls));
  RandomKeys random;
  const std::string key = random_key(random);
  std::string listed(subprotocol);
  if (request.resumption) listed += ", resume." + request.resumption->token;
  const std::string upgrade =
      upgrade_request(url.host_field(), stream_target(request), key, access.fields(), listed);
  const auto unsent = co_await write_all(socket, upgrade);
  if (unsent) co_return ConnectError{.message = address + reason_of(socket, unsent)};
  UpgradeAnswer answer(accept_of(key));
  while (!answer.is_complete()) {
    const auto space = answer.space();
    const auto [failed, count] = co_await read_some(socket, space);
    if (failed && socket.tls() && !socket.tls()->failure().empty())
      co_return ConnectError{.message = address + reason_of(socket, failed)};
    answer.add(count, failed);
  }
  if (auto refused = answer.refusal()) co_return std::move(*refused);
  co_return open_websocket(Role::client, std::move(socket), answer.rest(), max_service_message);
}

}  // namespace millrace
