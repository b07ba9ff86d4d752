// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "input/client_format.h"
#include "input/endpoint_rule.h"
#include "schemas/stream_request.h"
#include "service/config/options.h"
#include "transport/websocket/request_error.h"

namespace millrace {

// The client's format, the chunk size of its stream, and the ends of its segments.
struct CheckedRequest {
  ClientFormat format;
  std::optional<std::uint32_t> size;     // one of the rule's sizes; nullopt: the rule chooses
  std::optional<EndpointRule> endpoint;  // nullopt: only the client ends segments
};

// Checks the parameters of a request that depend on its pipeline: format, rate, shape, channel,
// chunk size and ends of segments. The error names the parameter, with status 415 if the pipeline
// cannot take such a stream, and 400 if the value is wrong for every stream or is not among those
// offered.
Result<CheckedRequest, RequestError> check_request(const StreamRequest& request,
                                                   const PipelineOptions& pipeline);

// The sizes of the pipeline's chunks, for people: "100ms", "80ms, 160ms, 320ms" or "20ms to 400ms
// in steps of 20ms".
std::string readable_sizes(const PipelineOptions& pipeline);

}  // namespace millrace
