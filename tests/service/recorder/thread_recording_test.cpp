// SPDX-License-Identifier: Apache-2.0
#include "service/recorder/thread_recording.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "chunker/rule_json.h"
#include "recording/writer/pending_slices.h"
#include "tests/service/pipelines/admission_under_test.h"

using namespace millrace;
using namespace millrace::recording;

namespace {

// The recording of one io thread, and what its recorder receives.
struct OneThread : PendingSlices::Sink {
  struct Written {
    StreamMeta meta{};
    std::size_t events = 0;
    std::vector<std::string> answers{};  // "seq batch data"
    std::optional<StreamTotals> closing{};
  };

  void add(PendingStream& stream) override {
    Written& one = written.emplace_back(
        Written{.meta = stream.meta, .events = stream.events.size(), .closing = stream.closing});
    for (const RecordedAnswer& answer : stream.answers)
      one.answers.push_back(std::to_string(answer.seq) + " " +
                            std::to_string(number(answer.batch)) + " " + std::string(answer.data));
  }
  void drop(PendingStream& stream, DropReason) override { stream.begin_next(); }
  void skipped(DropReason) override {}

  void receive() {
    thread.hand_over();
    std::vector<Page*> filled;
    pages.filled().drain(filled);
    for (Page* const page : filled) slices.take(*page);
    for (PendingStream* const stream : slices.waiting()) add(*stream);
  }
  // The metadata of a stream that a client opens.
  StreamMeta meta(const StreamRequest& request, const PipelineOptions& pipeline,
                  const ClientFormat& format) {
    auto tap = thread.tap(request, pipeline, format, from_wire(5'000));
    REQUIRE(tap);
    tap->event({.kind = Event::Kind::open}, from_wire(5'000), {});
    receive();
    return written.back().meta;
  }

  PagePool pages{0, 1, 4};
  std::atomic<std::uint64_t> next_stream = 17;
  ThreadRecording thread{pages, 0, next_stream, std::chrono::milliseconds(200)};
  PendingSlices slices{*this};
  std::vector<Written> written;
};

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (int i = 0; i < 10'000; ++i) all.push_back("call-" + std::to_string(i));
  return all;
}

std::vector<std::string> selected(double share) {
  std::vector<std::string> all = names();
  std::erase_if(all, [&](const std::string& name) { return !selects({.share = share}, name); });
  return all;
}

PipelineOptions recorded_pipeline() {
  PipelineOptions pipeline;
  pipeline.name = "asr";
  pipeline.record = RecordRule{.answers = true};
  pipeline.dtype = Element::f32;
  pipeline.batch.width_buckets = {800, 1600};
  pipeline.batch.row_buckets = {4, 16};
  return pipeline;
}

// The token of the stream in `ready`.
std::string token_of(AdmissionUnderTest::Client& client) {
  const std::string ready = client.received().at(0), member = R"("resume":")";
  const std::size_t begin = ready.find(member) + member.size();
  return ready.substr(begin, ready.find('"', begin) - begin);
}

}  // namespace

TEST_CASE("about the share of the streams is recorded") {
  CHECK(selected(1).size() == 10'000);
  for (const double share : {0.5, 0.05}) {
    const auto count = static_cast<double>(selected(share).size());
    CHECK(count > 9000 * share);
    CHECK(count < 11'000 * share);
  }
}

TEST_CASE("a larger share has the streams of a smaller one") {
  const auto few = selected(0.05), many = selected(0.2);
  CHECK(std::ranges::includes(many, few, [all = names()](const auto& a, const auto& b) {
    return std::stoi(a.substr(5)) < std::stoi(b.substr(5));
  }));
}

TEST_CASE("the draw of a name never changes") {
  // Services of other versions record the same streams.
  CHECK(selected(0.0005) == std::vector<std::string>{"call-6614", "call-7576", "call-9102"});
}

TEST_CASE_METHOD(OneThread,
                 "a recorded stream has its request, its rule, its batches and its format") {
  PipelineOptions pipeline = recorded_pipeline();
  pipeline.chunk.spec = {.size = 1600, .left = 80};
  const StreamMeta meta = this->meta(
      {.id = "mic", .options = R"({"language":"de"})"}, pipeline,
      {.format = SampleFormat::mulaw, .values = 2, .rate = 8000, .channel = OneChannel{1}});
  CHECK(meta.number == 17);
  CHECK(meta.name == "mic");
  CHECK(meta.pipeline == "asr");
  const auto rule = rule_from_json(meta.rule, {});
  REQUIRE(rule.has_value());
  CHECK(rule->spec.left == 80);
  CHECK(meta.options == R"({"language":"de"})");
  CHECK(meta.client == R"({"format":"mulaw","rate":8000,"channels":2,"channel":1})");
  CHECK(meta.batches == recording::RecordedBatches{.dtype = Element::f32,
                                                   .slots = 64,
                                                   .rows = 16,
                                                   .widths = {800, 1600},
                                                   .row_buckets = {4, 16}});
  CHECK(meta.opened_steady == 5'000);
  CHECK(next_stream == 18);
}

TEST_CASE_METHOD(OneThread, "the format of a client of features has its dim") {
  PipelineOptions pipeline = recorded_pipeline();
  pipeline.frames = {.element = Element::f32, .values = 3, .rate = 100, .features = true};
  const StreamMeta meta =
      this->meta({.id = "x"}, pipeline, {.format = SampleFormat::f32le, .values = 3, .rate = 100});
  CHECK(meta.client == R"({"format":"f32le","rate":100,"dim":3})");
  CHECK(meta.options.empty());
}

TEST_CASE_METHOD(OneThread, "the mean of a client's channels is named") {
  const StreamMeta meta =
      this->meta({.id = "x"}, recorded_pipeline(), {.values = 2, .channel = MeanOfChannels{}});
  CHECK(meta.client == R"({"format":"s16le","rate":16000,"channels":2,"channel":"mean"})");
}

TEST_CASE_METHOD(
    OneThread, "a stream is not recorded if its pipeline does not record, or its client declines") {
  CHECK_FALSE(thread.tap({.id = "x"}, PipelineOptions(), {}, {}));
  CHECK_FALSE(thread.tap({.id = "x", .record = false}, recorded_pipeline(), {}, {}));
  PipelineOptions rarely = recorded_pipeline();
  rarely.record->share = 1e-9;
  CHECK_FALSE(thread.tap({.id = "x"}, rarely, {}, {}));
  CHECK(next_stream == 17);
}

TEST_CASE_METHOD(OneThread,
                 "streams that are admitted are recorded from begin to end, with their answers") {
  AdmissionUnderTest admitted(3, false, &thread);
  test::Link& worker = admitted.attach();
  auto& client = admitted.open({.id = "mic"});
  auto& declining = admitted.open({.id = "private", .record = false});
  admitted.send_row(client);
  admitted.answer(worker, {{Answer::Kind::json, "1"}});
  AdmissionUnderTest::disconnect(client);
  AdmissionUnderTest::disconnect(declining);
  admitted.run();
  admitted.answer(worker);
  receive();
  REQUIRE(written.size() == 1);
  CHECK(written[0].meta.name == "mic");
  CHECK(written[0].events == 3);
  CHECK(written[0].answers == std::vector<std::string>{"0 1 1"});
  CHECK(written[0].closing->complete);
}

TEST_CASE_METHOD(OneThread, "a stream that is opened anew has the key of its first recording") {
  AdmissionUnderTest admitted(3, false, &thread);
  auto& first = admitted.open({.id = "mic", .resume = true});
  const std::string token = token_of(first);
  admitted.send_row(first);
  first.stream->disconnected(ConnectionEnd::clean, Clock::now());
  admitted.run();
  auto& anew = admitted.open(
      {.id = "mic",
       .resume = true,
       .resumption = Resumption{.token = token, .point = {.seq = 1, .frames = 4, .begin = 4}}});
  admitted.send_row(anew);
  receive();
  REQUIRE(written.size() == 2);
  REQUIRE(written[0].meta.resumable);
  REQUIRE(written[1].meta.resumable);
  CHECK(written[0].meta.resumable->epoch == 0);
  CHECK(written[1].meta.resumable->epoch == 1);
  CHECK(written[0].meta.resumable->stream == written[1].meta.resumable->stream);
  CHECK(written[0].meta.resumable->stream != StreamKey());
}

TEST_CASE_METHOD(OneThread, "a stream without a token has no key") {
  AdmissionUnderTest admitted(3, false, &thread);
  admitted.send_row(admitted.open({.id = "mic"}));
  receive();
  CHECK_FALSE(written.at(0).meta.resumable);
}

TEST_CASE_METHOD(OneThread, "a stream with a token that received nothing leaves no recording") {
  AdmissionUnderTest admitted(3, false, &thread);
  admitted.attach();
  auto& first = admitted.open({.id = "mic", .resume = true});
  AdmissionUnderTest::disconnect(first);
  admitted.run();
  auto& asking = admitted.open({.id = "two", .resume = true});
  asking.stream->flush(std::nullopt, Clock::now());
  AdmissionUnderTest::disconnect(admitted.open({.id = "three"}));
  admitted.run();
  receive();
  REQUIRE(written.size() == 2);
  CHECK(written[0].meta.name == "two");
  CHECK(written[1].meta.name == "three");
}
