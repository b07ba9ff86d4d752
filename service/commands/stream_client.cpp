// SPDX-License-Identifier: Apache-2.0
#include "service/commands/stream_client.h"

#include <algorithm>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <cmath>
#include <ostream>

#include "schemas/client_codec.h"
#include "service/audio_file.h"
#include "transport/client_messages.h"
#include "transport/json_text.h"
#include "transport/limits.h"
#include "transport/server_messages.h"

namespace millrace {
namespace {

using net::experimental::awaitable_operators::operator&&;
using Outcome = Result<void, std::string>;
using Kind = Connection::Kind;

constexpr std::uint16_t close_normal = 1000;
constexpr std::uint16_t close_going_away = 1001;

// One file on its way, and what is said of it.
class FileStream {
 public:
  FileStream(const StreamPlan& plan, std::string path, AudioFile file, std::ostream& out)
      : plan_(plan), path_(std::move(path)), file_(std::move(file)), out_(out) {}

  Task<Outcome> run(Executor executor) {
    StreamRequest request = plan_.request;
    request.format = "s16le";
    request.rate = file_.rate();
    request.channels = file_.channels();
    ServiceUrl url = plan_.url;
    auto opened = co_await open_stream(executor, std::move(url), std::move(request));
    if (!opened) co_return refusal(opened.error());
    connection_ = std::move(*opened);
    co_await (send_file(executor) && print_messages());
    if (failure_.empty()) co_return Outcome();
    co_return failure_;
  }

 private:
  static std::string refusal(const ConnectError& error) {
    if (error.status == 0) return error.message;
    return "refused with " + std::to_string(error.status) + ": " + error.message;
  }

  Task<> send_file(Executor executor) {
    const auto frame = file_.channels() * sizeof(std::int16_t);
    const auto wanted = std::chrono::duration<double>(plan_.packet).count() * file_.rate();
    const auto longest = ConnectionLimits().message / frame;
    const auto frames = std::clamp<std::size_t>(std::lround(wanted), 1, longest);
    const auto period = std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(static_cast<double>(frames) / file_.rate()));
    Timer clock(executor, Clock::now());
    for (;;) {
      const auto packet = file_.read(frames);
      if (!packet) {
        failure_ = packet.error();
        co_return co_await connection_->close(close_going_away, "the file is damaged");
      }
      if (packet->empty()) break;
      if (plan_.realtime) {  // a packet is there when its last frame is
        clock.expires_at(clock.expiry() + period);
        co_await clock.async_wait(no_throw);
      }
      const std::string_view bytes(reinterpret_cast<const char*>(packet->data()),
                                   packet->size_bytes());
      const bool sent = co_await connection_->send(Kind::binary, bytes, false);
      if (!sent) co_return;
    }
    const std::string end = to_json(client_message::End{});
    co_await connection_->send(Kind::text, end, false);
  }

  Task<> print_messages() {
    bool closed = false;
    for (;;) {
      const auto received = co_await connection_->receive();
      if (const auto* ended = std::get_if<Connection::Ended>(&received)) {
        if (failure_.empty() && !(closed && ended->code == close_normal)) failure_ = why(*ended);
        co_return;
      }
      const auto& message = std::get<Connection::Message>(received);
      if (message.kind == Kind::binary) {
        print_result(message.bytes);
      } else {
        closed |= print(message.text()) == ServerMessage::Type::closed;
      }
    }
  }

  ServerMessage::Type print(std::string_view text) {
    const auto message = parse_server_message(text);
    if (!message) {
      failure_ = "the service sent what is none of its messages";
      return ServerMessage::Type::unknown;
    }
    if (message->type == ServerMessage::Type::ready) name_ = message->stream;
    if (message->type == ServerMessage::Type::error)
      failure_ = message->code + ": " + message->message;

    append_string(line_.assign(R"({"file":)"), path_);
    if (message->type != ServerMessage::Type::ready)  // which has the name itself
      append_string(line_ += R"(,"stream":)", name_);
    line_.append(",").append(text.substr(text.find('{') + 1));
    out_ << line_ << std::endl;
    return message->type;
  }

  // Bytes have no place in a line: how many there are has.
  void print_result(Bytes bytes) {
    client_protocol::Decoder decoder(bytes.size());
    const auto message = decoder.to_client(bytes);
    const auto* result = message ? std::get_if<client_protocol::Result>(&*message) : nullptr;
    if (!result) {
      failure_ = "the service sent what is none of its messages";
      return;
    }
    std::string text;
    const ResultHead head{
        .seq = result->seq,
        .begin = result->begin,
        .end = result->end,
        .rate = result->end > 0 ? static_cast<double>(result->end) / result->end_s : 1,
        .flags = result->flags};
    append_result(text, head, {Answer::Kind::json, std::to_string(result->data.size())});
    print(text);
  }

  std::string why(const Connection::Ended& ended) const {
    if (ended.how != Connection::Ended::How::closed) return "the connection was lost";
    return "closed with " + std::to_string(ended.code) + " before it was over";
  }

  const StreamPlan& plan_;
  const std::string path_;
  AudioFile file_;
  std::ostream& out_;
  std::unique_ptr<Connection> connection_;
  std::string name_;
  std::string line_;
  std::string failure_;
};

}  // namespace

Task<Outcome> stream_file(Executor executor, const StreamPlan& plan, std::string path,
                          std::ostream& out) {
  auto file = AudioFile::open(path);
  if (!file) co_return file.error();
  FileStream stream(plan, std::move(path), std::move(*file), out);
  auto outcome = co_await stream.run(executor);
  co_return outcome;
}

}  // namespace millrace
