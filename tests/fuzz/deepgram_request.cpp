// SPDX-License-Identifier: Apache-2.0
// The target of a Deepgram client's request, and a message of `Results` with its text.
#include <string>

#include "schemas/json_text.h"
#include "schemas/text.h"
#include "tests/fuzz/target.h"
#include "transport/sessions/deepgram/listen_settings.h"
#include "transport/sessions/deepgram/results_message.h"

namespace millrace {
namespace {

using fuzz::require;

void check_request(std::string_view target) {
  const ModelPipelines pipelines{.pipeline = "default", .models = {{"m", "other"}}};
  const auto settings = parse_listen_target(target, pipelines);
  if (!settings) return require(!settings.error().message.empty(), "a refusal has a message");
  const StreamRequest& request = settings->request;
  require(request.options.size() <= longest_options, "options are limited");
  require(request.options.empty() || is_json_object(request.options), "options are an object");
  require(is_utf8(request.options), "options are UTF-8");
  require(request.format.has_value() && request.channels == 1, "the format is known");
  require(request.rate.has_value() != (request.format == "opus"), "the rate is known");
  const bool is_other = member_text(request.options, "model") == R"("m")";
  require(request.pipeline == (is_other ? "other" : "default"), "the model chooses the pipeline");
}

void check_results(std::string_view answer) {
  const auto transcript = parse_transcript(answer, false);
  if (!transcript) return;
  std::string message;
  append_results(message, {.start = 1, .end = 2}, *transcript, "{}");
  require(is_json_object(message), "a message is an object");
}

}  // namespace
}  // namespace millrace

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace millrace;
  const std::string_view text = fuzz::text_of(bytes, size);
  check_request(text);
  if (is_json_object(text)) check_results(text);
  return 0;
}
