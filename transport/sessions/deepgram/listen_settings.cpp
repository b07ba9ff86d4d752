// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/deepgram/listen_settings.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "schemas/json_text.h"
#include "schemas/text.h"
#include "transport/http/query_parameters.h"

namespace millrace {
namespace {

constexpr std::array<std::string_view, 9> heeded{
    "encoding",    "sample_rate",      "channels",        "multichannel", "callback",
    "endpointing", "utterance_end_ms", "interim_results", "vad_events"};

// An option of the stream, for the worker: a string, or a list of strings.
struct WorkerOption {
  std::string_view name;
  bool is_list;
  std::string json{};  // its value, a list without its end; empty: not given
};
using WorkerOptions = std::array<WorkerOption, 4>;

// Descriptions of the allowed values, if a value is wrong.
using Wrong = std::optional<std::string>;

Wrong read_switch(bool& is_on, std::string_view value) {
  is_on = value == "true";
  return is_on || value == "false" ? Wrong() : "must be true or false";
}

Wrong read_encoding(StreamRequest& request, std::string_view value) {
  if (value == "linear16")
    request.format = "s16le";
  else if (value == "mulaw" || value == "alaw" || value == "opus")
    request.format = value;
  else
    return "must be linear16, mulaw, alaw or opus";
  return std::nullopt;
}

Wrong read_endpointing(SegmentEnds& ends, std::string_view value) {
  if (value == "true") return std::nullopt;
  const auto ms = value == "false" ? 0 : number_in<std::uint32_t>(value);
  if (!ms) return "must be a number of milliseconds, true or false";
  if (*ms == 0)
    ends = {.by = SegmentEnds::By::client};
  else
    ends.silence = std::chrono::milliseconds(*ms);
  return std::nullopt;
}

Wrong read(ListenSettings& to, std::string_view name, std::string_view value) {
  const auto number = number_in<std::uint32_t>(value);
  if (name == "encoding") return read_encoding(to.request, value);
  if (name == "endpointing") return read_endpointing(to.request.ends, value);
  if (name == "interim_results") return read_switch(to.reports.interim_results, value);
  if (name == "vad_events") return read_switch(to.reports.speech_starts, value);
  if (name == "callback") return "must be absent: results are sent over this connection";
  if (name == "channels")
    return value == "1" ? Wrong() : "must be 1: the audio of a stream has one channel";
  if (name == "multichannel")
    return value == "false" ? Wrong() : "must be false: the audio of a stream has one channel";
  if (name == "utterance_end_ms") {
    to.reports.utterance_ends = number.value_or(0) > 0;
    return number ? Wrong() : "must be a number of milliseconds";
  }
  to.request.rate = number;
  return number.value_or(0) > 0 ? Wrong() : "must be a number of samples per second";
}

Wrong read(WorkerOption& option, std::string_view value) {
  const char* const before = !option.is_list ? "" : option.json.empty() ? "[" : ",";
  append_string(option.json += before, value);
  return std::nullopt;
}

std::string object_of(const WorkerOptions& options) {
  std::string object = "{";
  for (const auto& [name, is_list, json] : options) {
    if (json.empty()) continue;
    append_string(object += object.size() > 1 ? "," : "", name);
    object.append(":").append(json).append(is_list ? "]" : "");
  }
  return object.size() > 1 ? object + '}' : std::string();
}

RequestError wrong(std::string_view parameter, std::string message) {
  return {.parameter = std::string(parameter), .message = std::move(message)};
}

std::optional<RequestError> settle_format(StreamRequest& request) {
  if (!request.format)
    return wrong("encoding", "is missing: audio in a container is not supported");
  if (request.format == "opus")
    request.rate.reset();  // packets of any rate are decoded
  else if (!request.rate && request.format == "s16le")
    return wrong("sample_rate", "is missing: linear16 needs it");
  else if (!request.rate)
    request.rate = 8'000;
  return std::nullopt;
}

}  // namespace

Result<ListenSettings, RequestError> parse_listen_target(std::string_view target,
                                                         const ModelPipelines& pipelines) {
  ListenSettings settings;
  StreamRequest& request = settings.request;
  request.channels = 1;
  request.ends.by = SegmentEnds::By::voice;
  request.pipeline = pipelines.of("");
  WorkerOptions options{
      {{"model", false}, {"language", false}, {"keyterm", true}, {"keywords", true}}};
  std::array<bool, heeded.size()> given{};
  for (const auto& [name, text] : parameters_of(target)) {
    const auto option = std::ranges::find(options, name, &WorkerOption::name);
    const auto place = static_cast<std::size_t>(std::ranges::find(heeded, name) - heeded.begin());
    const bool is_option = option != options.end();
    if (!is_option && place == heeded.size()) continue;
    const bool again = is_option ? !option->is_list && !option->json.empty()
                                 : std::exchange(given.at(place), true);
    if (again) return wrong(name, "is given twice");
    const auto value = percent_decoded(text);
    if (!value || !is_utf8(*value)) return wrong(name, "must be UTF-8 in percent-encoding");
    if (name == "model") request.pipeline = pipelines.of(*value);
    if (auto must = is_option ? read(*option, *value) : read(settings, name, *value))
      return wrong(name, std::move(*must));
  }
  if (auto fault = settle_format(request)) return std::move(*fault);
  request.options = object_of(options);
  if (request.options.size() > longest_options)
    return wrong("", "model, language, keyterm and keywords must have at most 4096 bytes");
  return settings;
}

}  // namespace millrace
