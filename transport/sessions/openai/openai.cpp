// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/openai/openai.h"

#include <memory>

#include "schemas/json_text.h"
#include "transport/http/query_parameters.h"
#include "transport/sessions/openai/conversation.h"

namespace millrace {
namespace {

std::string model_in(std::string_view target) {
  for (const auto& [name, value] : parameters_of(target))
    if (name == "model") return percent_decoded(value).value_or("");
  return {};
}

}  // namespace

Result<WebSocketProtocol::Accepted, RequestError> OpenAi::accept(const HttpQuery& query,
                                                                 SessionScope& scope,
                                                                 const ClientIdentity& client) {
  auto upgrade = parse_upgrade(query, "realtime");
  if (!upgrade) return std::move(upgrade.error());
  SessionSettings settings(pipelines_, model_in(query.target));
  // A pipeline of features has no session of audio, but its settings may be asked for.
  auto refused = settings.settle(admission_, client);
  if (refused && refused->parameter == "options")
    return RequestError{.parameter = "model", .message = "must be text of at most 4 KiB"};
  if (refused && refused->parameter != "format") return std::move(*refused);
  return Accepted{std::move(*upgrade),
                  std::make_unique<OpenAiConversation>(scope, client, admission_, settings),
                  longest_vendor_message};
}

HttpAnswer OpenAi::answer(const RequestError& error, SessionScope&) const {
  HttpAnswer answer = answer_to(error);
  append_string(answer.body = R"({"error":{"message":)", error.message);
  answer.body.append(R"(,"type":")")
      .append(error.status < 500 ? "invalid_request_error" : "server_error")
      .append(R"(","param":)");
  error.parameter.empty() ? void(answer.body += "null")
                          : append_string(answer.body, error.parameter);
  answer.body.append(R"(,"code":")").append(name_of(code_of(error))) += "\"}}";
  return answer;
}

}  // namespace millrace
