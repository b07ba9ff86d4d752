// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "load/protocols/client_protocol.h"
#include "schemas/stream_request.h"

namespace millrace::load {

// The service's own protocol (docs/protocol.md). A commit is a flush with a mark.
class MillraceV1 final : public ClientProtocol {
 public:
  // `request` has the parameters of every stream, except its name. With request.resume, the streams
  // survive their connections.
  explicit MillraceV1(StreamRequest request) : request_(std::move(request)) {}

  std::string target(const std::string& stream) override;
  std::string_view subprotocol() const override;
  std::unique_ptr<ClientSession> session(std::uint32_t client, const std::string& stream) override;

 private:
  StreamRequest request_;
};

}  // namespace millrace::load
