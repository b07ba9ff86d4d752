// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "load/protocols/client_protocol.h"
#include "load/protocols/foreign_session.h"

namespace millrace::load {

// Deepgram live transcription (docs/protocols.md). A commit is `Finalize`, its result the one with
// `from_finalize`; the end is `CloseStream`. Results have the position of their audio.
class DeepgramClients final : public ClientProtocol {
 public:
  // Throws std::invalid_argument for a format that the protocol does not have.
  explicit DeepgramClients(ForeignStreams streams);

  std::string target(const std::string& stream) override;
  std::unique_ptr<ClientSession> session(std::uint32_t client, const std::string& stream) override;

 private:
  ForeignStreams streams_;
};

}  // namespace millrace::load
