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

// Reads the header of one HTTP request from bytes as they come, within the limits of
// transport/net/limits.h. How the bytes are split changes nothing, but which of two faults is found
// first. Confined to one thread.
class HttpReader {
 public:
  HttpReader();

  // Where the next bytes of the peer go; never empty.
  boost::asio::mutable_buffer space();

  // So many were put there. Nothing while the header goes on; afterwards no more may be added.
  std::optional<Result<HttpQuery, HttpFault>> add(std::size_t size);

  // The peer sent no more, and the header is not complete.
  HttpFault end() const { return parser_.got_some() ? HttpFault::malformed : HttpFault::gone; }

  // What was added beyond the header.
  std::string_view rest() const;

 private:
  boost::beast::flat_buffer buffer_;
  std::size_t received_ = 0;
  boost::beast::http::request_parser<boost::beast::http::empty_body> parser_;
};

}  // namespace millrace
