// SPDX-License-Identifier: Apache-2.0
#include "load/protocols/native_session.h"

#include <string>
#include <string_view>
#include <variant>

#include "chunker/row.h"
#include "load/protocols/received_result.h"
#include "schemas/json_text.h"
#include "transport/net/limits.h"

namespace millrace::load {

namespace cp = client_protocol;

void NativeSession::send(Bytes frames, FrameWriter& to) {
  to.write(Opcode::binary, text_in(frames));
}

std::uint64_t NativeSession::add_commit(Time due) {
  commits_.push_back(due);
  return finished_ + commits_.size() - 1;
}

void NativeSession::commit(Time due, FrameWriter& to) {
  std::string message = R"({"type":"flush","mark":)";
  append_number(message, add_commit(due));
  to.write(Opcode::text, message += '}');
}

void NativeSession::end(FrameWriter& to) { to.write(Opcode::text, R"({"type":"end"})"); }

bool NativeSession::received(bool is_text, Bytes bytes, Time now, ClientSink& sink, FrameWriter&) {
  bool valid = false;
  if (!is_text) {
    cp::Decoder decoder(max_service_message);
    const auto message = decoder.to_client(bytes);
    valid = message && report(*message, now, sink);
  } else if (const auto result = read_result(text_in(bytes))) {
    sink.received(client(), *result, now);
    return true;
  } else {
    const auto message = parse_server_message(text_in(bytes));
    valid = message && report(*message, now, sink);
  }
  if (!valid) why_ = "invalid message from the service";
  return valid;
}

bool NativeSession::report(const cp::ToClient& message, Time now, ClientSink& sink) {
  if (const auto* worker = std::get_if<cp::Message>(&message)) {
    sink.message(client(), worker->number);
    return true;
  }
  const auto* result = std::get_if<cp::Result>(&message);
  if (!result) return false;
  sink.received(client(),
                {result->seq, result->begin, result->end, (result->flags & flag::gap) != 0, false,
                 text_in(result->data)},
                now);
  return true;
}

bool NativeSession::report(const ServerMessage& message, Time now, ClientSink& sink) {
  using Type = ServerMessage::Type;
  switch (message.type) {
    case Type::result:
      sink.received(client(),
                    {message.seq, message.begin, message.end, (message.flags & flag::gap) != 0,
                     message.kind == Answer::Kind::error, message.data},
                    now);
      break;
    case Type::message: sink.message(client(), message.number); break;
    case Type::flushed: return flushed(message.mark, now, sink);
    case Type::rejected: sink.rejected(client(), message.frames); break;
    case Type::error: why_ = message.code; break;
    case Type::closed:
      totals_ = {.frames = message.frames, .rows = message.chunks};
      ended_ = true;
      break;
    default: break;
  }
  return true;
}

bool NativeSession::flushed(std::uint64_t mark, Time now, ClientSink& sink) {
  if (commits_.empty() || mark != finished_) return false;
  ++finished_;
  sink.finished(client(), commits_.front(), false, now);
  commits_.erase(commits_.begin());
  return true;
}

}  // namespace millrace::load
