// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/deepgram/listen_settings.h"

#include <catch2/catch.hpp>

using namespace millrace;
using namespace std::chrono_literals;
using By = SegmentEnds::By;

namespace {

const ModelPipelines listen_pipelines{.pipeline = "default", .models = {{"nova-3", "english"}}};

ListenSettings listened(const std::string& query) {
  const auto parsed = parse_listen_target("/v1/listen?" + query, listen_pipelines);
  if (!parsed) FAIL(parsed.error().parameter + " " + parsed.error().message);
  return *parsed;
}

// The same, of samples at 16 kHz.
ListenSettings pcm(const std::string& query) {
  return listened("encoding=linear16&sample_rate=16000&" + query);
}

std::string listen_fault(const std::string& query) {
  const auto parsed = parse_listen_target("/v1/listen?" + query, listen_pipelines);
  if (parsed) return "none";
  CHECK(parsed.error().status == 400);
  return parsed.error().parameter + " " + parsed.error().message;
}

}  // namespace

TEST_CASE("a request has one channel of samples, and by default only final results") {
  const auto listen = pcm("");
  CHECK(listen.request.format == "s16le");
  CHECK(listen.request.rate == 16'000);
  CHECK(listen.request.channels == 1);
  CHECK(listen.request.options.empty());
  CHECK(listen.request.ends == SegmentEnds{.by = By::voice});
  CHECK_FALSE(listen.reports.interim_results);
  CHECK_FALSE(listen.reports.speech_starts);
  CHECK_FALSE(listen.reports.utterance_ends);
}

TEST_CASE("telephone audio has 8 kHz if no rate is given, and Opus needs none") {
  CHECK(listened("encoding=mulaw").request.rate == 8'000);
  CHECK(listened("encoding=alaw&sample_rate=16000").request.rate == 16'000);
  CHECK(listened("encoding=opus&sample_rate=16000").request.rate == std::nullopt);
}

TEST_CASE("silence that ends an utterance is heeded, and the client alone can end them") {
  CHECK(pcm("endpointing=300").request.ends == SegmentEnds{By::voice, 300ms});
  CHECK(pcm("endpointing=true").request.ends == SegmentEnds{.by = By::voice});
  CHECK(pcm("endpointing=false").request.ends == SegmentEnds{.by = By::client});
  CHECK(pcm("endpointing=0").request.ends == SegmentEnds{.by = By::client});
}

TEST_CASE("events and interim results are sent if they are asked for") {
  const auto listen = pcm("interim_results=true&vad_events=true&utterance_end_ms=1000");
  CHECK(listen.reports.interim_results);
  CHECK(listen.reports.speech_starts);
  CHECK(listen.reports.utterance_ends);
}

TEST_CASE("the model chooses the pipeline, and the worker receives what is said of the speech") {
  const auto known = pcm("model=nova-3&language=de&keyterm=a&keyterm=b+c&keywords=%C3%A4:2");
  CHECK(known.request.pipeline == "english");
  CHECK(known.request.options ==
        R"({"model":"nova-3","language":"de","keyterm":["a","b c"],"keywords":["ä:2"]})");
  const auto other = pcm("model=..%2Fetc%2F%22");
  CHECK(other.request.pipeline == "default");
  CHECK(other.request.options == R"({"model":"../etc/\""})");
}

TEST_CASE("parameters that mean nothing here are ignored, whatever their values") {
  CHECK(pcm("punctuate=true&tag=%&multichannel=false&x").request.options.empty());
}

TEST_CASE("what cannot be honoured is refused") {
  CHECK(listen_fault("") == "encoding is missing: audio in a container is not supported");
  CHECK(listen_fault("encoding=flac") == "encoding must be linear16, mulaw, alaw or opus");
  CHECK(listen_fault("encoding=linear16") == "sample_rate is missing: linear16 needs it");
  CHECK(listen_fault("channels=2") == "channels must be 1: the audio of a stream has one channel");
  CHECK(listen_fault("multichannel=true") ==
        "multichannel must be false: the audio of a stream has one channel");
  CHECK(listen_fault("callback=http://a") ==
        "callback must be absent: results are sent over this connection");
}

TEST_CASE("a value of a wrong type is refused") {
  for (const char* rate : {"", "0", "-1", "many", "16000.5", "99999999999"})
    CHECK(listen_fault("sample_rate=" + std::string(rate)) ==
          "sample_rate must be a number of samples per second");
  CHECK(listen_fault("endpointing=soon") ==
        "endpointing must be a number of milliseconds, true or false");
  CHECK(listen_fault("utterance_end_ms=x") == "utterance_end_ms must be a number of milliseconds");
  CHECK(listen_fault("interim_results=1") == "interim_results must be true or false");
  CHECK(listen_fault("vad_events=") == "vad_events must be true or false");
  CHECK(listen_fault("language=en&language=de") == "language is given twice");
  CHECK(listen_fault("language=%f") == "language must be UTF-8 in percent-encoding");
  CHECK(listen_fault("keyterm=%ff") == "keyterm must be UTF-8 in percent-encoding");
  CHECK(listen_fault("encoding=mulaw&keyterm=" + std::string(5000, 'x')) ==
        " model, language, keyterm and keywords must have at most 4096 bytes");
}
