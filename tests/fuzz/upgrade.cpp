// SPDX-License-Identifier: Apache-2.0
// The bytes of an HTTP request that a client sends to open a WebSocket, in pieces.
#include "transport/websocket/upgrade.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "schemas/text.h"
#include "tests/fuzz/target.h"
#include "transport/access/presented_token.h"
#include "transport/http/reader.h"
#include "transport/net/limits.h"
#include "transport/websocket/stream_target.h"

namespace millrace {
namespace {

using fuzz::require;

using Outcome = Result<HttpQuery, HttpFault>;

struct Reading {
  Outcome query;
  std::size_t used = 0;  // bytes of the header
};

// Passes the bytes to a reader in pieces of `piece` bytes, as a socket does.
Reading read(std::string_view bytes, std::size_t piece) {
  HttpReader reader;
  std::size_t given = 0;
  while (given < bytes.size()) {
    const auto space = reader.space();
    require(space.size() > 0, "the reader has space for more of a header");
    const std::size_t size = std::min({piece, space.size(), bytes.size() - given});
    std::memcpy(space.data(), bytes.data() + given, size);
    given += size;
    if (auto query = reader.add(size)) return {std::move(*query), given - reader.rest().size()};
  }
  require(given < max_header_bytes, "a header that is too long is refused");
  return {reader.end()};
}

// If a request has two faults, the split decides which one is found first.
bool same(const Reading& a, const Reading& b) {
  if (a.query.has_error()) return b.query.has_error();
  return b.query.has_value() && a.used == b.used && a.query->method == b.query->method &&
         a.query->target == b.query->target && a.query->version == b.query->version &&
         a.query->fields == b.query->fields;
}

bool same(const StreamRequest& a, const StreamRequest& b) {
  return a.pipeline == b.pipeline && a.id == b.id && a.options == b.options &&
         a.format == b.format && a.channel == b.channel && a.chunk == b.chunk && a.rate == b.rate &&
         a.channels == b.channels && a.dim == b.dim && a.record == b.record &&
         a.explain == b.explain && a.resume == b.resume && a.resumption == b.resumption;
}

void check_answer(const HttpAnswer& answer) {
  require(answer.status >= 400 && answer.status < 500, "the status of a refusal is a client error");
  require(is_json_object(answer.body), "a refusal is JSON");
  require(is_printable(answer.body, 1024), "and fit to be read");
}

void check_stream(const StreamRequest& stream) {
  require(is_name(stream.pipeline), "a pipeline has a name");
  require(stream.id.empty() || is_name(stream.id), "a stream, too");
  require(stream.options.empty() || is_json_object(stream.options), "options are an object");
  const auto again = parse_stream_target(stream_target(stream));
  // The written form may have more percent-encoded characters, and be too long.
  require(again ? same(*again, stream) : again.error().status == 414,
          "a request is read as it is written");
}

void check_token(const HttpQuery& query) {
  const auto token = presented_token(query);
  if (!token || token->empty()) return;
  const auto has = [&](const auto& field) {
    return field.second.find(*token) != std::string::npos;
  };
  require(std::ranges::any_of(query.fields, has), "a token is a part of a field");
}

void check_upgrade(const HttpQuery& query) {
  check_token(query);
  if (const auto refused = refuse_page(query)) return check_answer(answer_to(*refused));
  const auto stream = parse_stream_target(query.target);
  stream ? check_stream(*stream) : check_answer(answer_to(stream.error()));
  const auto upgrade = parse_upgrade(query, subprotocol);
  if (!upgrade) return check_answer(answer_to(upgrade.error()));
  require(upgrade->key.size() == 24, "an upgrade has a key");
}

}  // namespace
}  // namespace millrace

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace millrace;
  const std::string_view text = fuzz::text_of(bytes, size);
  const Reading whole = read(text, text.size());
  // Another split, chosen by the input.
  const std::size_t piece = size == 0 ? 1 : 1 + bytes[size / 2] % 64;
  require(same(read(text, piece), whole), "the result does not depend on the split of the bytes");
  if (whole.query)
    check_upgrade(*whole.query);
  else if (whole.query.error() != HttpFault::disconnected)
    check_answer(answer_to(whole.query.error()));
  return 0;
}
