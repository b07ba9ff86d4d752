// SPDX-License-Identifier: Apache-2.0
#include "client/internal/incoming.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <optional>
#include <string>
#include <utility>

namespace millrace {
namespace {

namespace cp = client_protocol;
namespace json = boost::json;

// The value of a JSON string; nullopt for any other JSON. A worker may answer with text or with a
// JSON string, and over WebSocket both look alike.
std::optional<std::string> string_in(std::string_view value) {
  if (!value.starts_with('"')) return std::nullopt;
  json::error_code wrong;
  const json::value parsed = json::parse({value.data(), value.size()}, wrong);
  if (wrong || !parsed.is_string()) return std::nullopt;
  return std::string(parsed.get_string().data(), parsed.get_string().size());
}

Answer answer_of(Answer::Kind kind, std::string_view data) {
  if (kind != Answer::Kind::json) return {kind, std::string(data)};
  constexpr std::string_view blank = " \t\r\n";
  data.remove_prefix(std::min(data.size(), data.find_first_not_of(blank)));
  data = data.substr(0, data.find_last_not_of(blank) + 1);
  if (auto text = string_in(data)) return {Answer::Kind::text, std::move(*text)};
  return {kind, std::string(data)};
}

client_event::Result result_of(const cp::Result& result) {
  return {.seq = result.seq,
          .begin = result.begin,
          .end = result.end,
          .begin_s = result.begin_s,
          .end_s = result.end_s,
          .flags = result.flags,
          .answer = answer_of(result.kind, text_in(result.data))};
}

Answer answer_of(ServerMessage& message) {
  const bool json = message.kind == Answer::Kind::json;
  return {message.kind, json ? std::string(message.data) : std::move(message.text)};
}

client_event::Result result_of(ServerMessage& message) {
  return {.seq = message.seq,
          .begin = message.begin,
          .end = message.end,
          .begin_s = message.begin_s,
          .end_s = message.end_s,
          .flags = message.flags,
          .answer = answer_of(message),
          .explain = std::string(message.explain)};
}

// The code of docs/protocol.md for an HTTP status, for an answer without a code.
std::string code_of(unsigned status) {
  switch (status) {
    case 401: return "unauthenticated";
    case 409: return "conflict";
    case 414: return "too_long";
    case 415: return "format";
    case 503: return "no_room";
    default: return "schema";
  }
}

// A string member of `error` in the body of a refusal; empty if it has none.
std::string error_member(const json::value& body, std::string_view name) {
  const json::object* object = body.if_object();
  const json::value* error = object ? object->if_contains("error") : nullptr;
  if (!error || !error->is_object()) return {};
  const json::value* value = error->get_object().if_contains({name.data(), name.size()});
  if (!value || !value->is_string()) return {};
  return {value->get_string().data(), value->get_string().size()};
}

StreamFailure refusal(std::string code, const std::string& message, std::string parameter,
                      std::optional<std::chrono::milliseconds> retry_after) {
  std::string what = "refused as " + code + ": " + message;
  if (!parameter.empty()) what += " (" + parameter + ")";
  return StreamFailure::refused(std::move(what), std::move(code), std::move(parameter),
                                retry_after);
}

struct Receiver {
  StreamPipe& pipe;

  void operator()(const cp::Result& result) const { pipe.deliver(result_of(result)); }
  void operator()(const cp::Message& message) const {
    pipe.deliver(client_event::Message{.number = message.number,
                                       .seq = message.seq,
                                       .message = answer_of(message.kind, text_in(message.data))});
  }
  void operator()(const cp::Ready& ready) const {
    pipe.deliver(client_event::Opened{.stream = std::string(ready.id),
                                      .pipeline = std::string(ready.pipeline),
                                      .frames = ready.frames});
  }
  void operator()(const cp::Flushed& flushed) const {
    pipe.deliver(client_event::Flushed{flushed.mark});
  }
  void operator()(const cp::Rejected& rejected) const {
    pipe.deliver(client_event::Rejected{.code = std::string(rejected.code),
                                        .message = std::string(rejected.message),
                                        .frames = rejected.frames});
  }
  void operator()(const cp::Error& error) const {
    pipe.fail(StreamFailure::failed(std::string(error.code), std::string(error.message)));
  }
  void operator()(const cp::Closed& closed) const {
    pipe.close({.frames = closed.frames, .chunks = closed.chunks});
  }
  void operator()(const cp::Credit&) const {}
  void operator()(const cp::Goaway& goaway) const {
    pipe.deliver(client_event::Goaway{goaway.retry_after});
  }
  void operator()(const cp::Ack&) const {}
};

}  // namespace

void receive(StreamPipe& pipe, const cp::ToClient& message) { std::visit(Receiver{pipe}, message); }

bool is_complete(const ServerMessage& message) {
  using Type = ServerMessage::Type;
  if (message.type == Type::result) return message.kind != Answer::Kind::none;
  if (message.type != Type::message) return true;
  return message.kind != Answer::Kind::none && message.kind != Answer::Kind::error;
}

void receive(StreamPipe& pipe, ServerMessage& message) {
  using Type = ServerMessage::Type;
  switch (message.type) {
    case Type::result: return pipe.deliver(result_of(message));
    case Type::message:
      return pipe.deliver(client_event::Message{message.number, message.seq, answer_of(message)});
    case Type::ready:
      return pipe.deliver(
          client_event::Opened{message.stream, std::move(message.pipeline), message.frames});
    case Type::flushed: return receive(pipe, cp::Flushed{.mark = message.mark});
    case Type::rejected:
      return receive(
          pipe,
          cp::Rejected{.code = message.code, .message = message.message, .frames = message.frames});
    case Type::warning: return pipe.deliver(client_event::Warned{message.code, message.message});
    case Type::error: return pipe.fail(StreamFailure::failed(message.code, message.message));
    case Type::goaway: return receive(pipe, cp::Goaway{.retry_after = message.retry_after});
    case Type::closed:
      return receive(pipe, cp::Closed{.frames = message.frames, .chunks = message.chunks});
    case Type::ack:
    case Type::unknown: return;
  }
}

StreamFailure refusal_of(const cp::Error& error) {
  return refusal(std::string(error.code), std::string(error.message), std::string(error.parameter),
                 error.retry_after);
}

StreamFailure refusal_of(const ConnectError& error) {
  if (error.status == 0) return StreamFailure::lost(error.message);
  json::error_code wrong;
  const json::value body = json::parse(error.message, wrong);
  std::string code = error_member(body, "code");
  if (code.empty()) code = code_of(error.status);
  std::string message = error_member(body, "message");
  if (message.empty()) message = "HTTP " + std::to_string(error.status);
  return refusal(std::move(code), message, error_member(body, "parameter"), error.retry_after);
}

}  // namespace millrace
