// SPDX-License-Identifier: Apache-2.0
#include "service/pipelines/client_protocols.h"

#include "transport/sessions/deepgram/deepgram.h"
#include "transport/sessions/millrace_v1/millrace_v1.h"
#include "transport/sessions/openai/openai.h"

namespace millrace {
namespace {

std::unique_ptr<WebSocketProtocol> make_protocol(const ProtocolOptions& protocol,
                                                 StreamAdmission& admission) {
  switch (protocol.name) {
    case ProtocolOptions::Name::openai:
      return std::make_unique<OpenAi>(admission, protocol.pipelines);
    case ProtocolOptions::Name::deepgram:
      return std::make_unique<Deepgram>(admission, protocol.pipelines);
  }
  return nullptr;
}

}  // namespace

ClientProtocols make_protocols(std::span<const ProtocolOptions> protocols,
                               const std::optional<TcpAddress>& address,
                               StreamAdmission& admission) {
  ClientProtocols all;
  if (!address) all.push_back(std::make_unique<MillraceV1>(admission));
  for (const ProtocolOptions& protocol : protocols)
    if (protocol.listen == address) all.push_back(make_protocol(protocol, admission));
  return all;
}

}  // namespace millrace
