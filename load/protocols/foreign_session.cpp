// SPDX-License-Identifier: Apache-2.0
#include "load/protocols/foreign_session.h"

#include <algorithm>
#include <array>
#include <boost/json/monotonic_resource.hpp>
#include <boost/json/parse.hpp>
#include <limits>

#include "load/streams/load_stream_id.h"
#include "transport/http/query_parameters.h"
#include "transport/websocket/stream_target.h"

namespace millrace::load {

void add_path(std::string& target, std::string_view path) {
  if (target.empty() || target == "/" || target.starts_with('?'))
    target = std::string(path) + target.substr(target.starts_with('/') ? 1 : 0);
}

void add_parameter(std::string& target, std::string_view name, std::string_view value) {
  for (const auto& [given, ignored] : parameters_of(target))
    if (given == name) return;
  append_parameter(target, name, value);
}

bool ForeignSession::received(bool is_text, Bytes message, Time now, ClientSink& sink,
                              FrameWriter& to) {
  std::array<unsigned char, 8192> memory;
  boost::json::monotonic_resource resource(memory.data(), memory.size());
  boost::system::error_code error;
  const boost::json::value event = boost::json::parse(text_in(message), error, &resource);
  if (is_text && !error && event.is_object()) return handle(event, now, sink, to);
  why_ = "invalid message from the service";
  return false;
}

void ForeignSession::report_text(std::string_view text, std::optional<double> end, Time now,
                                 ClientSink& sink) {
  if (!named_) return sink.text(client(), end, now);
  // A text that is no word of the own worker is the answer of another row.
  constexpr RowWord wrong{.begin = std::numeric_limits<std::uint64_t>::max(), .end = 0};
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (word.empty()) continue;
    const RowWord row = parse_word(word).value_or(wrong);
    sink.received(client(), {.seq = words_++, .begin = row.begin, .end = row.end, .data = word},
                  now);
  }
}

}  // namespace millrace::load
