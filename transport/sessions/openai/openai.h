// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "transport/sessions/conversation.h"
#include "transport/sessions/model_pipelines.h"

namespace millrace {

// OpenAI's Realtime transcription: GET /v1/realtime. The parameter `model` chooses the pipeline of
// the first stream; other parameters are ignored. Confined to one thread.
class OpenAi final : public WebSocketProtocol {
 public:
  // `admission` outlives it.
  OpenAi(StreamAdmission& admission, ModelPipelines pipelines)
      : admission_(admission), pipelines_(std::move(pipelines)) {}

  std::string_view path() const override { return "/v1/realtime"; }
  Result<Accepted, RequestError> accept(const HttpQuery& query, SessionScope& scope,
                                        const ClientIdentity& client) override;
  HttpAnswer answer(const RequestError& error, SessionScope& scope) const override;

 private:
  StreamAdmission& admission_;
  const ModelPipelines pipelines_;
};

}  // namespace millrace
