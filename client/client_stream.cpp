// SPDX-License-Identifier: Apache-2.0
#include "client/client_stream.h"

#include <stdexcept>
#include <utility>

#include "client/internal/stream_pipe.h"
#include "schemas/client_messages.h"
#include "schemas/text.h"

namespace millrace {
namespace {

// The service would end the stream because of such a command.
void check(const ClientMessage& command) {
  using client_protocol::max_number;
  if (const auto* flush = std::get_if<client_message::Flush>(&command))
    if (flush->mark.value_or(0) > max_number)
      throw std::invalid_argument("a mark must be at most 2^53 - 1");
  if (std::holds_alternative<client_message::Ack>(command))
    throw std::invalid_argument("the client acknowledges by itself");
  if (const auto* gap = std::get_if<client_message::Gap>(&command))
    if (gap->frames == 0 || gap->frames > max_number)
      throw std::invalid_argument("a gap must have 1 to 2^53 - 1 frames");
  if (const auto* message = std::get_if<client_message::Message>(&command))
    if (!is_json(message->data, client_message::deepest_data))
      throw std::invalid_argument("the data of a message must be JSON, nested at most 24 deep");
  if (const auto* set = std::get_if<client_message::Set>(&command))
    if (!is_json_object(set->options, client_message::deepest_data))
      throw std::invalid_argument("options must be a JSON object, nested at most 24 deep");
}

}  // namespace

ClientStream::ClientStream(std::shared_ptr<StreamPipe> pipe) : pipe_(std::move(pipe)) {}
ClientStream::ClientStream(ClientStream&&) noexcept = default;
ClientStream& ClientStream::operator=(ClientStream&& other) noexcept {
  std::swap(pipe_, other.pipe_);
  return *this;
}
ClientStream::~ClientStream() {
  if (pipe_) pipe_->abandon();
}

bool ClientStream::send_until(Bytes frames, Time deadline) {
  return pipe_->queue(frames, deadline);
}

bool ClientStream::send_until(const ClientMessage& command, Time deadline) {
  check(command);
  return pipe_->queue(command, deadline);
}

std::optional<ClientEvent> ClientStream::next_until(Time deadline) { return pipe_->next(deadline); }
void ClientStream::close() { pipe_->abandon(); }
bool ClientStream::over() const { return pipe_->over(); }
std::string ClientStream::name() const { return pipe_->name(); }
std::uint64_t ClientStream::number() const { return pipe_->number(); }

}  // namespace millrace
