// SPDX-License-Identifier: Apache-2.0
#include "schemas/client_codec.h"

#include <cmath>

#include "client_generated.h"
#include "schemas/text.h"
#include "schemas/wire.h"

namespace millrace {
namespace {

bool makes_sense(const BytesResult& result) {
  return is_name(result.stream) && result.begin <= result.end && std::isfinite(result.begin_s) &&
         std::isfinite(result.end_s);
}

}  // namespace

ClientEncoder::ClientEncoder() : builder_(std::make_unique<flatbuffers::FlatBufferBuilder>()) {}
ClientEncoder::~ClientEncoder() = default;
ClientEncoder::ClientEncoder(ClientEncoder&&) noexcept = default;
ClientEncoder& ClientEncoder::operator=(ClientEncoder&&) noexcept = default;

Bytes ClientEncoder::encode_result(const BytesResult& result) {
  auto& builder = *builder_;
  builder.Clear();
  const auto stream = builder.CreateString(result.stream.data(), result.stream.size());
  const auto data = builder.CreateVector(reinterpret_cast<const std::uint8_t*>(result.data.data()),
                                         result.data.size());
  const auto body = wire::CreateResult(builder, stream, result.seq, result.begin, result.end,
                                       result.begin_s, result.end_s, result.flags, data);
  wire::FinishToClientBuffer(
      builder, wire::CreateToClient(builder, wire::ToClientBody::Result, body.Union()));
  return wire::finished(builder);
}

Result<BytesResult, WireError> decode_result(Bytes message, std::size_t max_size,
                                             AlignedMessage& scratch) {
  if (message.size() > max_size) return WireError::too_long;
  const auto* root =
      wire::verified<wire::ToClient>(scratch.of(message), wire::ToClientIdentifier());
  if (!root) return WireError::malformed;
  const auto* body = root->body_as_Result();
  if (!body) return WireError::unknown;
  const BytesResult result{.stream = wire::view(body->stream()),
                           .seq = body->seq(),
                           .begin = body->begin(),
                           .end = body->end(),
                           .begin_s = body->begin_s(),
                           .end_s = body->end_s(),
                           .flags = body->flags(),
                           .data = wire::bytes_of(body->data())};
  if (!makes_sense(result)) return WireError::meaning;
  return result;
}

}  // namespace millrace
