// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/openai/session_settings.h"

#include <catch2/catch.hpp>

using namespace millrace;
using By = SegmentEnds::By;

namespace {

const ModelPipelines pipelines{.pipeline = "default", .models = {{"nova", "english"}}};

std::string input(std::string_view members) {
  return R"({"type":"transcription","audio":{"input":{)" + std::string(members) + "}}}";
}

// The fault of an update, or "".
std::string fault(std::string_view session) {
  SessionSettings settings(pipelines, "");
  const auto wrong = settings.update(session);
  return wrong ? wrong->parameter + " " + wrong->message : "";
}
std::string fault_in(std::string_view members) { return fault(input(members)); }

StreamRequest set(std::string_view members, std::string model = "") {
  SessionSettings settings(pipelines, std::move(model));
  REQUIRE_FALSE(settings.update(input(members)));
  return settings.request();
}

std::string in_force(std::string_view members) {
  SessionSettings settings(pipelines, "");
  REQUIRE_FALSE(settings.update(input(members)));
  std::string out;
  settings.append(out, "sess_1");
  return out;
}

}  // namespace

TEST_CASE("a session begins with PCM of 24 kHz and with the detection of speech") {
  const StreamRequest first = set("");
  CHECK(first.pipeline == "default");
  CHECK(first.format == "s16le");
  CHECK(first.rate == 24'000);
  CHECK(first.channels == 1u);
  CHECK(first.ends == SegmentEnds{By::voice});
  CHECK(first.options.empty());
}

TEST_CASE("a client chooses among the formats of OpenAI, and among rates") {
  CHECK(set(R"("format":{"type":"audio/pcm","rate":16000})").rate == 16'000);
  CHECK(set(R"("format":{"type":"audio/pcmu"})").format == "mulaw");
  CHECK(set(R"("format":{"type":"audio/pcmu"})").rate == 8'000);
  CHECK(set(R"("format":{"type":"audio/pcma"})").format == "alaw");
}

TEST_CASE("strings may be written with escapes") {
  CHECK(set(R"("format":{"type":"audio\/pcmu"})").format == "mulaw");
  CHECK(set(R"("turn_detection":{"type":"semantic\u005fvad"})").ends == SegmentEnds{By::voice});
}

TEST_CASE("a model chooses the pipeline, in the URL or in an update") {
  CHECK(set("", "nova").pipeline == "english");
  CHECK(set("", "other").pipeline == "default");
  CHECK(set("", "../nova").pipeline == "default");
  CHECK(set(R"("transcription":{"model":"nova"})", "other").pipeline == "english");
  CHECK(set(R"("transcription":{"model":"\u006eova"})").pipeline == "english");
}

TEST_CASE("the worker receives what the client says of the speech, as it is written") {
  CHECK(set("", "nova").options == R"({"model":"nova"})");
  CHECK(set(R"("transcription":{"keywords":["a", "b"],"delay":1,"prompt":"x\n","language":"de",)"
            R"("model":"m","languages":null})")
            .options == R"({"model":"m","language":"de","keywords":["a", "b"],"prompt":"x\n"})");
}

TEST_CASE("members that an update does not have keep their values") {
  SessionSettings settings(pipelines, "");
  CHECK_FALSE(settings.update(input(R"("format":{"type":"audio/pcmu"},"turn_detection":null)")));
  CHECK_FALSE(settings.update(input(R"("transcription":{"language":"de"})")));
  CHECK_FALSE(settings.update(R"({"include":["x"],"type":"transcription"})"));
  CHECK(settings.request().format == "mulaw");
  CHECK(settings.request().ends == SegmentEnds{By::client});
  CHECK(settings.request().options == R"({"language":"de"})");
}

TEST_CASE("every detection of speech is that of the service, or none") {
  using std::chrono::milliseconds;
  CHECK(set(R"("turn_detection":{"type":"server_vad","silence_duration_ms":350})").ends ==
        SegmentEnds{By::voice, milliseconds(350)});
  CHECK(set(R"("turn_detection":{"type":"semantic_vad","silence_duration_ms":350})").ends ==
        SegmentEnds{By::voice});
  CHECK(set(R"("turn_detection":null)").ends == SegmentEnds{By::client});
}

TEST_CASE("the settings in force are those of a session of transcription") {
  CHECK(in_force("") ==
        R"({"type":"transcription","object":"realtime.transcription_session","id":"sess_1",)"
        R"("audio":{"input":{"format":{"type":"audio/pcm","rate":24000},"transcription":null,)"
        R"("noise_reduction":null,"turn_detection":{"type":"server_vad"}}}})");
  CHECK(in_force(R"("format":{"type":"audio/pcmu","rate":8000},"transcription":{"model":"m"},)"
                 R"("turn_detection":null)") ==
        R"({"type":"transcription","object":"realtime.transcription_session","id":"sess_1",)"
        R"("audio":{"input":{"format":{"type":"audio/pcmu"},"transcription":{"model":"m"},)"
        R"("noise_reduction":null,"turn_detection":null}}})");
}

TEST_CASE("a member of a wrong type is a fault that names it") {
  CHECK(fault("7") == "session must be an object");
  CHECK(fault("") == "session must be an object");
  CHECK(fault(R"({"type":"realtime"})") ==
        "session.type must be transcription: this service has no other sessions");
  CHECK(fault(R"({"audio":7})") == "session.audio must be an object");
  CHECK(fault(R"({"audio":{"input":[]}})") == "session.audio.input must be an object");
  CHECK(fault_in(R"("format":"audio/pcm")") == "session.audio.input.format must be an object");
  CHECK(fault_in(R"("format":{"type":"audio/ogg"})") ==
        "session.audio.input.format.type must be audio/pcm, audio/pcmu or audio/pcma");
  CHECK(fault_in(R"("format":{"type":"audio/pcm","rate":"24000"})") ==
        "session.audio.input.format.rate must be a number of samples per second");
  CHECK(fault_in(R"("format":{"type":"audio/pcm","rate":1e300})") ==
        "session.audio.input.format.rate must be a number of samples per second");
  CHECK(fault_in(R"("transcription":[])") == "session.audio.input.transcription must be an object");
  CHECK(fault_in(R"("transcription":{"language":7})") ==
        "session.audio.input.transcription.language must be a string");
  CHECK(fault_in(R"("transcription":{"keywords":"a"})") ==
        "session.audio.input.transcription.keywords must be a list");
  CHECK(fault_in(R"("turn_detection":true)") ==
        "session.audio.input.turn_detection must be an object or null");
  CHECK(fault_in(R"("turn_detection":{"type":"none"})") ==
        "session.audio.input.turn_detection.type must be server_vad or semantic_vad");
  for (const char* silence : {"-1", "60001", "\"x\"", "1e99", "[]"})
    CHECK(
        fault_in(R"("turn_detection":{"type":"server_vad","silence_duration_ms":)" +
                 std::string(silence) + "}") ==
        "session.audio.input.turn_detection.silence_duration_ms must be a number from 0 to 60000");
}
