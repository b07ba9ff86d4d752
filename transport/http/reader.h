// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <cstddef>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "transport/http/message.h"

namespace millrace {

// Reads the header of one HTTP request as its bytes arrive, within the limits of
// transport/net/limits.h. The result does not depend on how the bytes are split, except that of two
// faults either may be found first. Confined to one thread.
class HttpReader {
 public:
  HttpReader();

  // Memory for the next bytes of the peer; never empty.
  boost::asio::mutable_buffer space();

  // Parses the first `size` bytes of space(). Nullopt while the header is incomplete. After a
  // result, no more bytes may be added.
  std::optional<Result<HttpQuery, HttpFault>> add(std::size_t size);

  // The fault if the connection ends before the header is complete.
  HttpFault end() const {
    return parser_.got_some() ? HttpFault::malformed : HttpFault::disconnected;
  }

  // The bytes added beyond the header. Valid while this object is unchanged.
  std::string_view rest() const;

 private:
  boost::beast::flat_buffer buffer_;
  std::size_t received_ = 0;
  boost::beast::http::request_parser<boost::beast::http::empty_body> parser_;
};

}  // namespace millrace
