// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/openai/session_settings.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <utility>

#include "schemas/json_text.h"
#include "schemas/text.h"
#include "transport/http/query_parameters.h"

namespace millrace {
namespace {

using Fault = SessionSettings::Fault;

constexpr std::string_view input = "session.audio.input.";

Fault fault(std::string_view parameter, std::string message) {
  return {.parameter = std::string(parameter), .message = std::move(message)};
}

bool is_object(std::string_view value) { return value.starts_with('{'); }
bool is_string(std::string_view value) { return value.starts_with('"'); }
bool is_array(std::string_view value) { return value.starts_with('['); }

// The value of a member; empty if it is null or absent.
std::string_view value_of(std::string_view object, std::string_view name) {
  const std::string_view value = member_text(object, name);
  return value == "null" ? std::string_view() : value;
}

std::string options_of(std::string_view model) {
  if (model.empty()) return {};
  std::string options = R"({"model":)";
  append_string(options, model);
  return options += '}';
}

// The members of `transcription` that the worker receives.
struct Option {
  std::string_view name;
  bool (*is_valid)(std::string_view);
};
constexpr std::array<Option, 5> options_for_worker{{{"model", is_string},
                                                    {"language", is_string},
                                                    {"languages", is_array},
                                                    {"keywords", is_array},
                                                    {"prompt", is_string}}};

}  // namespace

SessionSettings::SessionSettings(const ModelPipelines& pipelines, std::string model)
    : pipelines_(&pipelines), model_(std::move(model)), options_(options_of(model_)) {}

std::optional<Fault> SessionSettings::update(std::string_view session) {
  if (!is_object(session)) return fault("session", "must be an object");
  const std::string_view type = value_of(session, "type");
  if (!type.empty() && string_in(type) != "transcription")
    return fault("session.type", "must be transcription: this service has no other sessions");
  const std::string_view audio = value_of(session, "audio");
  if (!audio.empty() && !is_object(audio)) return fault("session.audio", "must be an object");
  const std::string_view input_audio = value_of(audio, "input");
  if (input_audio.empty()) return std::nullopt;
  if (!is_object(input_audio)) return fault("session.audio.input", "must be an object");

  std::optional<Fault> wrong = update_format(value_of(input_audio, "format"));
  if (!wrong) wrong = update_transcription(value_of(input_audio, "transcription"));
  if (!wrong) wrong = update_detection(member_text(input_audio, "turn_detection"));
  if (wrong) wrong->parameter.insert(0, input);
  return wrong;
}

std::optional<Fault> SessionSettings::update_format(std::string_view format) {
  if (format.empty()) return std::nullopt;
  if (!is_object(format)) return fault("format", "must be an object");
  const std::string type = string_in(value_of(format, "type"));
  if (type != "audio/pcm" && type != "audio/pcmu" && type != "audio/pcma")
    return fault("format.type", "must be audio/pcm, audio/pcmu or audio/pcma");
  const std::string_view rate = value_of(format, "rate");
  const auto number = number_in<double>(rate);
  if (!rate.empty() && (!number || *number < 1 || *number > 1e6))
    return fault("format.rate", "must be a number of samples per second");
  format_ = type;
  rate_ = format_ == "audio/pcm" ? number.value_or(24'000) : 8'000;
  return std::nullopt;
}

std::optional<Fault> SessionSettings::update_transcription(std::string_view transcription) {
  if (transcription.empty()) return std::nullopt;
  if (!is_object(transcription)) return fault("transcription", "must be an object");
  std::string options = "{";
  for (const auto& [name, is_valid] : options_for_worker) {
    const std::string_view value = value_of(transcription, name);
    if (value.empty()) continue;
    if (!is_valid(value))
      return fault("transcription." + std::string(name),
                   is_valid == is_array ? "must be a list" : "must be a string");
    append_string(options += options.size() > 1 ? "," : "", name);
    options.append(":").append(value);
    if (name == "model") model_ = string_value(value);
  }
  options += '}';
  options_ = options.size() > 2 ? std::move(options) : options_of(model_);
  return std::nullopt;
}

std::optional<Fault> SessionSettings::update_detection(std::string_view detection) {
  if (detection.empty()) return std::nullopt;
  if (detection == "null") {
    wanted_ = {.by = SegmentEnds::By::client};
    return std::nullopt;
  }
  if (!is_object(detection)) return fault("turn_detection", "must be an object or null");
  const std::string type = string_in(value_of(detection, "type"));
  if (type != "server_vad" && type != "semantic_vad")
    return fault("turn_detection.type", "must be server_vad or semantic_vad");
  wanted_ = {.by = SegmentEnds::By::voice};
  const std::string_view silence = value_of(detection, "silence_duration_ms");
  if (silence.empty() || type == "semantic_vad") return std::nullopt;
  const auto ms = number_in<double>(silence);
  if (!ms || *ms < 0 || *ms > 60'000)
    return fault("turn_detection.silence_duration_ms", "must be a number from 0 to 60000");
  wanted_.silence = std::chrono::milliseconds(std::lround(*ms));
  return std::nullopt;
}

std::optional<RequestError> SessionSettings::settle(StreamAdmission& admission,
                                                    const ClientIdentity& client) {
  has_detector_ = true;
  auto refused = admission.refusal(request(), client);
  if (!refused || refused->parameter != "endpoint") return refused;
  has_detector_ = false;
  return admission.refusal(request(), client);
}

std::optional<Fault> SessionSettings::fault_of(const RequestError& refused) {
  const std::string path(input);
  if (refused.parameter == "rate") return Fault{path + "format.rate", refused.message};
  if (refused.parameter == "options") return Fault{path + "transcription", refused.message};
  return std::nullopt;
}

// New options are merged into those before: one that is not there any more would stay.
bool SessionSettings::continues(const SessionSettings& before) const {
  const StreamRequest was = before.request(), is = request();
  const auto is_kept = [&](const Option& option) {
    return member_text(was.options, option.name).empty() ||
           !member_text(is.options, option.name).empty();
  };
  return was.pipeline == is.pipeline && was.format == is.format && was.rate == is.rate &&
         was.ends == is.ends && std::ranges::all_of(options_for_worker, is_kept);
}

StreamRequest SessionSettings::request() const {
  const std::string_view format = format_ == "audio/pcmu"   ? "mulaw"
                                  : format_ == "audio/pcma" ? "alaw"
                                                            : "s16le";
  return {.pipeline = pipelines_->of(model_),
          .options = options_,
          .format = std::string(format),
          .rate = rate_,
          .channels = 1,
          .ends = ends()};
}

void SessionSettings::append(std::string& out, std::string_view id) const {
  append_string(out += R"({"type":"transcription","object":"realtime.transcription_session","id":)",
                id);
  append_string(out += R"(,"audio":{"input":{"format":{"type":)", format_);
  if (format_ == "audio/pcm")
    append_number(out += R"(,"rate":)", static_cast<std::uint64_t>(rate_));
  out.append(R"(},"transcription":)").append(options_.empty() ? "null" : options_);
  out += R"(,"noise_reduction":null,"turn_detection":)";
  if (!detects_voice()) {
    out += "null";
  } else {
    out += R"({"type":"server_vad")";
    if (wanted_.silence)
      append_number(out += R"(,"silence_duration_ms":)",
                    static_cast<std::uint64_t>(wanted_.silence->count()));
    out += '}';
  }
  out += "}}}";
}

}  // namespace millrace
