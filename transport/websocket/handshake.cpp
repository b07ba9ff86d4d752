// SPDX-License-Identifier: Apache-2.0
#include "transport/websocket/handshake.h"

#include <array>
#include <boost/beast/core/detail/base64.hpp>
#include <boost/beast/core/detail/sha1.hpp>

namespace millrace {
namespace {

namespace detail = boost::beast::detail;

std::string base64(const void* bytes, std::size_t size) {
  std::string text(detail::base64::encoded_size(size), ' ');
  text.resize(detail::base64::encode(text.data(), bytes, size));
  return text;
}

}  // namespace

std::string accept_of(std::string_view key) {
  constexpr std::string_view guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  detail::sha1_context sha1;
  detail::init(sha1);
  detail::update(sha1, key.data(), key.size());
  detail::update(sha1, guid.data(), guid.size());
  std::array<char, detail::sha1_context::digest_size> digest;
  detail::finish(sha1, digest.data());
  return base64(digest.data(), digest.size());
}

std::string upgrade_request(std::string_view host, std::string_view target, std::string_view key,
                            std::string_view fields, std::string_view listed) {
  std::string text = "GET ";
  text.append(target).append(" HTTP/1.1\r\nHost: ").append(host);
  text += "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13";
  text.append("\r\nSec-WebSocket-Key: ").append(key);
  if (!listed.empty()) text.append("\r\nSec-WebSocket-Protocol: ").append(listed);
  text += "\r\n";
  return text.append(fields).append("\r\n");
}

std::string random_key(RandomKeys& random) {
  const std::array bytes{random.next(), random.next(), random.next(), random.next()};
  return base64(&bytes, sizeof bytes);
}

std::string answer_to(const Upgrade& upgrade) {
  std::string text =
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Accept: " +
      accept_of(upgrade.key);
  if (!upgrade.subprotocol.empty())
    text.append("\r\nSec-WebSocket-Protocol: ").append(upgrade.subprotocol);
  return text + "\r\n\r\n";
}

}  // namespace millrace
