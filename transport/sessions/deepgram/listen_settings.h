// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/result.h"
#include "schemas/stream_request.h"
#include "transport/sessions/model_pipelines.h"
#include "transport/websocket/request_error.h"

namespace millrace {

// The parameters of a request of Deepgram's live protocol.
struct ListenSettings {
  // The messages that are sent beside final results.
  struct Reports {
    bool interim_results = false;  // results that are not final
    bool speech_starts = false;    // the begin of speech: `vad_events`
    bool utterance_ends = false;   // the end of an utterance: `utterance_end_ms`
  };

  StreamRequest request{};  // its segments end by voice, or only by the client
  Reports reports{};
};

// The parameters of "/v1/listen?name=value&…". Parameters that mean nothing here are ignored.
// `model` chooses one of the pipelines. Pure.
Result<ListenSettings, RequestError> parse_listen_target(std::string_view target,
                                                         const ModelPipelines& pipelines);

}  // namespace millrace
