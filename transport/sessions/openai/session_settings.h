// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "schemas/stream_request.h"
#include "transport/sessions/model_pipelines.h"
#include "transport/sessions/stream_admission.h"

namespace millrace {

// The settings of an OpenAI transcription session, as its client set them with `session.update`.
// Members that the service does not know are ignored. Confined to one thread.
class SessionSettings {
 public:
  struct Fault {
    std::string parameter;  // "session.audio.input.format.type"
    std::string message;
  };

  // `model` is that of the URL, or empty. `pipelines` outlives it.
  SessionSettings(const ModelPipelines& pipelines, std::string model);

  // Applies the object `session` of a message, JSON. Members that it does not have keep their
  // values. If it returns a fault, the settings are undefined.
  std::optional<Fault> update(std::string_view session);
  // Finds out whether the pipeline can detect speech: a detection that it does not have is not in
  // force. Returns why no stream can be opened now with these settings.
  std::optional<RequestError> settle(StreamAdmission& admission, const ClientIdentity& client);
  bool detects_voice() const { return ends().by == SegmentEnds::By::voice; }

  // The member of the settings that a refused stream is about; nullopt if it is about none.
  static std::optional<Fault> fault_of(const RequestError& refused);
  // True if a stream with the settings before can continue with these: at most its options change.
  bool continues(const SessionSettings& before) const;

  // The stream that the client opens with these settings.
  StreamRequest request() const;
  // Appends the object `session` of the session with this id: what is in force.
  void append(std::string& out, std::string_view id) const;

 private:
  std::optional<Fault> update_format(std::string_view format);
  std::optional<Fault> update_transcription(std::string_view transcription);
  std::optional<Fault> update_detection(std::string_view detection);

  SegmentEnds ends() const {
    return has_detector_ ? wanted_ : SegmentEnds{.by = SegmentEnds::By::client};
  }

  const ModelPipelines* pipelines_;
  std::string model_;
  std::string options_;  // for the worker: a JSON object
  std::string format_ = "audio/pcm";
  double rate_ = 24'000;
  SegmentEnds wanted_{.by = SegmentEnds::By::voice};  // by the client
  bool has_detector_ = true;                          // if the client wants it
};

}  // namespace millrace
