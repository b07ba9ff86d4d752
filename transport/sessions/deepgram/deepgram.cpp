// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/deepgram/deepgram.h"

#include <memory>
#include <string>

#include "schemas/json_text.h"
#include "transport/sessions/deepgram/conversation.h"
#include "transport/sessions/deepgram/listen_settings.h"

namespace millrace {
namespace {

// In the form of a UUID.
std::string request_id(SessionScope& scope) {
  std::string id = scope.new_id() + scope.new_id();
  for (const std::size_t at : {8, 13, 18, 23}) id.insert(at, "-");
  return id;
}

std::string_view error_code(unsigned status) {
  switch (status) {
    case 401: return "INVALID_AUTH";
    case 403: return "INSUFFICIENT_PERMISSIONS";
    default: return status < 500 ? "Bad Request" : "Service Unavailable";
  }
}

// The error of the pipeline, in the names of the protocol.
RequestError translated(RequestError error) {
  if (error.status == 415) error.status = 400;
  if (error.parameter == "rate") error.parameter = "sample_rate";
  if (error.parameter == "format") error.parameter = "encoding";
  if (error.parameter == "channel") error.parameter = "channels";
  return error;
}

}  // namespace

// If the pipeline can detect no endpoint, only the client ends segments: most clients ask for
// endpoints, and know no answer that there are none.
Result<WebSocketProtocol::Accepted, RequestError> Deepgram::accept(const HttpQuery& query,
                                                                   SessionScope& scope,
                                                                   const ClientIdentity& client) {
  auto upgrade = parse_upgrade(query, "token");
  if (!upgrade) return std::move(upgrade.error());
  auto settings = parse_listen_target(query.target, pipelines_);
  if (!settings) return std::move(settings.error());
  StreamRequest& request = settings->request;
  const auto refused = admission_.refusal(request, client);
  if (refused && refused->parameter == "endpoint") request.ends = {.by = SegmentEnds::By::client};
  auto conversation =
      std::make_unique<DeepgramConversation>(scope, client, settings->reports, request_id(scope));
  if (auto error = conversation->open(admission_, std::move(request)))
    return translated(std::move(*error));
  return Accepted{std::move(*upgrade), std::move(conversation), longest_vendor_message};
}

HttpAnswer Deepgram::answer(const RequestError& error, SessionScope& scope) const {
  HttpAnswer answer = answer_to(error);
  answer.body.assign(R"({"err_code":")").append(error_code(error.status));
  append_string(answer.body += R"(","err_msg":)",
                error.parameter.empty() ? error.message : error.parameter + ' ' + error.message);
  append_string(answer.body += R"(,"request_id":)", request_id(scope));
  answer.body += '}';
  return answer;
}

}  // namespace millrace
