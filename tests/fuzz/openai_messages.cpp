// SPDX-License-Identifier: Apache-2.0
// A message of an OpenAI client: JSON with settings of a session, or with audio.
#include <string>
#include <vector>

#include "schemas/client_command.h"
#include "schemas/json_text.h"
#include "schemas/text.h"
#include "tests/fuzz/target.h"
#include "transport/base64/base64.h"
#include "transport/sessions/openai/session_settings.h"

namespace millrace {
namespace {

using fuzz::require;

// A model in the URL may be any bytes: the service then refuses the options.
void check_settings(std::string_view session, std::string_view next) {
  const ModelPipelines pipelines{.pipeline = "default", .models = {{"m", "other"}}};
  SessionSettings settings(pipelines, "m");
  if (!next.empty()) (void)settings.update(next);
  if (const auto fault = settings.update(session)) {
    require(fault->parameter.starts_with("session"), "a fault names a member of the session");
    return require(!fault->message.empty(), "a fault has a message");
  }
  const StreamRequest request = settings.request();
  require(request.options.empty() || is_json_object(request.options), "options are an object");
  std::string session_in_force;
  settings.append(session_in_force, "sess_1");
  require(is_json_object(session_in_force, 2 + client_message::deepest_data),
          "the settings in force are an object");
  SessionSettings again(pipelines, "m");
  require(!again.update(session_in_force), "the settings in force are valid");
  require(again.request().format == request.format && again.request().ends == request.ends,
          "and the same");
}

void check_audio(std::string_view audio) {
  std::vector<std::byte> memory;
  if (const auto bytes = decode_base64(audio, memory))
    require(base64(text_in(*bytes)).size() == audio.size(), "base64 has one length");
}

}  // namespace
}  // namespace millrace

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace millrace;
  const std::string_view text = fuzz::text_of(bytes, size);
  check_audio(text);
  if (!is_json_object(text, client_message::deepest_data)) return 0;
  check_settings(member_text(text, "session"), member_text(text, "before"));
  const std::string_view audio = member_text(text, "audio");
  if (audio.starts_with('"')) check_audio(string_value(audio));
  return 0;
}
