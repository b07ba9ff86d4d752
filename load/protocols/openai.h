// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "load/protocols/client_protocol.h"
#include "load/protocols/foreign_session.h"

namespace millrace::load {

// OpenAI Realtime transcription (docs/protocols.md). The stream is open once `session.updated`
// confirms its settings, in which only the client commits. It has ended when every commit is
// completed: then the client closes the connection.
class OpenAiClients final : public ClientProtocol {
 public:
  // Throws std::invalid_argument for a format that the protocol does not have.
  explicit OpenAiClients(ForeignStreams streams);

  std::string target(const std::string& stream) override;
  std::unique_ptr<ClientSession> session(std::uint32_t client, const std::string& stream) override;

 private:
  ForeignStreams streams_;
};

}  // namespace millrace::load
