// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "transport/sessions/conversation.h"
#include "transport/sessions/model_pipelines.h"

namespace millrace {

// Deepgram's live protocol: GET /v1/listen. The parameters of the URL open the stream of the
// connection. Confined to one thread.
class Deepgram final : public WebSocketProtocol {
 public:
  // `admission` outlives it.
  Deepgram(StreamAdmission& admission, ModelPipelines pipelines)
      : admission_(admission), pipelines_(std::move(pipelines)) {}

  std::string_view path() const override { return "/v1/listen"; }
  Result<Accepted, RequestError> accept(const HttpQuery& query, SessionScope& scope,
                                        const ClientIdentity& client) override;
  HttpAnswer answer(const RequestError& error, SessionScope& scope) const override;

 private:
  StreamAdmission& admission_;
  const ModelPipelines pipelines_;
};

}  // namespace millrace
