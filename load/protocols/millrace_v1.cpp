// SPDX-License-Identifier: Apache-2.0
#include "load/protocols/millrace_v1.h"

#include <variant>
#include <vector>

#include "chunker/row.h"
#include "load/protocols/received_result.h"
#include "schemas/client_codec.h"
#include "schemas/json_text.h"
#include "schemas/server_messages.h"
#include "transport/net/limits.h"
#include "transport/websocket/stream_target.h"
#include "transport/websocket/upgrade.h"

namespace millrace::load {

namespace {

class NativeSession final : public ClientSession {
 public:
  using ClientSession::ClientSession;

  std::optional<StreamTotals> totals() const override { return totals_; }

  void send(Bytes frames, FrameWriter& to) override { to.write(Opcode::binary, text_in(frames)); }

  void commit(Time due, FrameWriter& to) override {
    std::string message = R"({"type":"flush","mark":)";
    append_number(message, finished_ + commits_.size());
    commits_.push_back(due);
    to.write(Opcode::text, message += '}');
  }

  void end(FrameWriter& to) override { to.write(Opcode::text, R"({"type":"end"})"); }

  bool received(bool is_text, Bytes message, Time now, ClientSink& sink, FrameWriter&) override {
    const bool valid = is_text ? text(text_in(message), now, sink) : binary(message, now, sink);
    if (!valid) why_ = "invalid message from the service";
    return valid;
  }

 private:
  bool binary(Bytes message, Time now, ClientSink& sink) {
    client_protocol::Decoder decoder(max_service_message);
    const auto decoded = decoder.to_client(message);
    if (!decoded) return false;
    if (const auto* worker = std::get_if<client_protocol::Message>(&*decoded)) {
      sink.message(client(), worker->number);
      return true;
    }
    const auto* result = std::get_if<client_protocol::Result>(&*decoded);
    if (!result) return false;
    sink.received(client(),
                  {result->seq, result->begin, result->end, (result->flags & flag::gap) != 0, false,
                   text_in(result->data)},
                  now);
    return true;
  }

  bool text(std::string_view text, Time now, ClientSink& sink) {
    if (const auto result = read_result(text)) {
      sink.received(client(), *result, now);
      return true;
    }
    const auto message = parse_server_message(text);
    if (!message) return false;
    using Type = ServerMessage::Type;
    switch (message->type) {
      case Type::result:
        sink.received(
            client(),
            {message->seq, message->begin, message->end, (message->flags & flag::gap) != 0,
             message->kind == Answer::Kind::error, message->data},
            now);
        break;
      case Type::message: sink.message(client(), message->number); break;
      case Type::flushed: return flushed(message->mark, now, sink);
      case Type::rejected: sink.rejected(client(), message->frames); break;
      case Type::error: why_ = message->code; break;
      case Type::closed:
        totals_ = {.frames = message->frames, .rows = message->chunks};
        ended_ = true;
        break;
      default: break;
    }
    return true;
  }

  bool flushed(std::uint64_t mark, Time now, ClientSink& sink) {
    if (commits_.empty() || mark != finished_) return false;
    ++finished_;
    sink.finished(client(), commits_.front(), false, now);
    commits_.erase(commits_.begin());
    return true;
  }

  StreamTotals totals_{};
  std::uint64_t finished_ = 0;  // commits that are done; the mark of the next one
  std::vector<Time> commits_;   // those that are not done
};

}  // namespace

std::string MillraceV1::target(const std::string& stream) {
  request_.id = stream;
  return stream_target(request_);
}

std::string_view MillraceV1::subprotocol() const { return millrace::subprotocol; }

std::unique_ptr<ClientSession> MillraceV1::session(std::uint32_t client, const std::string&) {
  return std::make_unique<NativeSession>(client);
}

}  // namespace millrace::load
