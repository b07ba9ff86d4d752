// SPDX-License-Identifier: Apache-2.0
#include "replay/replay.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <thread>
#include <tuple>

#include "replay/selection.h"
#include "tests/replay/written_recording.h"
#include "tests/support/temporary_directory.h"
#include "workers/library/worker.h"

using namespace millrace;
using Kind = Event::Kind;

namespace {

// A row as a worker receives it, without slot and batch: seq, begin, left, size, right, flags,
// reason, gap, mark, and the values of its window.
using Received =
    std::tuple<std::uint64_t, std::uint64_t, std::uint32_t, std::uint32_t, std::uint32_t, int, int,
               std::uint64_t, std::int64_t, std::vector<std::byte>>;
using Streams = std::map<std::string, std::vector<Received>>;

std::vector<Received> expected(const WrittenStream& stream) {
  std::vector<Received> rows;
  std::uint64_t skipped = 0;
  Chunker chunker(stream.rule.chunker_spec());
  for (const Event& event : stream.events) {
    chunker.add(event);
    while (const auto row = chunker.next()) {
      std::vector<std::byte> window;
      if (row->has_frames()) {
        const auto begin =
            stream.frames.begin() + static_cast<long>(2 * (row->window_begin() - skipped));
        window.assign(begin, begin + 2 * row->window());
      }
      rows.emplace_back(row->seq, row->begin, row->left, row->size, row->right, row->flags,
                        static_cast<int>(row->reason), row->gap,
                        row->mark ? static_cast<std::int64_t>(*row->mark) : -1, window);
    }
    if (event.kind == Kind::gap) skipped += event.count;
  }
  return rows;
}

Received received(const worker_protocol::RowEntry& row, Bytes window) {
  return {row.seq,    row.begin,
          row.left,   row.size,
          row.right,  row.flags,
          row.reason, row.gap,
          row.mark,   std::vector<std::byte>(window.begin(), window.end())};
}

// The answer of the test's worker to a row.
std::string answer_to(std::uint64_t begin) { return "{\"at\":" + std::to_string(begin) + "}"; }

struct Outcome {
  Streams rows{};
  std::string out{}, err{};
  bool good = false;
};

// Replays the directory to a worker in this process. `wrong`: the row of each stream to which the
// worker gives another answer.
Outcome replay(const std::string& directory, bool compare = false,
               std::optional<std::uint64_t> wrong = {}, const std::string& chunk = {}) {
  const auto recordings = recording::expect(recording::Recordings::open(directory));
  const auto streams = recording::join_parts(recordings->streams());
  const auto pipeline = recording::expect(replay_pipeline(recordings->streams(), {.chunk = chunk}));
  std::ostringstream out, err;
  ReplayOutput output(out, err, compare);
  auto replay = replay_to_workers(*recordings, streams, pipeline,
                                  WorkersAddress{.path = directory + "/workers.sock"},
                                  ScheduleRule{}, output);
  Outcome outcome;
  std::jthread thread([&] {
    Worker worker("unix:" + directory + "/workers.sock", {.pipeline = pipeline.options.name});
    std::map<StreamId, std::string> names;
    while (auto batch = worker.next()) {
      for (const auto& stream : batch->opened()) names[stream.stream] = stream.name;
      std::vector<Answer> answers;
      for (std::uint32_t i = 0; i < batch->framed().size(); ++i) {
        const auto& row = batch->framed()[i];
        const std::uint32_t lead = worker.columns().lead(row.left);
        const Bytes window = batch->row(i).subspan(2 * lead, 2 * (row.left + row.size + row.right));
        outcome.rows[names[row.stream]].push_back(received(row, window));
        answers.push_back(
            {.kind = Answer::Kind::json, .data = row.seq == wrong ? "null" : answer_to(row.begin)});
      }
      for (const auto& row : batch->marks())
        outcome.rows[names[row.stream]].push_back(received(row, {}));
      worker.done(*batch, answers);
    }
  });
  CHECK(replay->run());
  replay.reset();  // sends Bye
  thread.join();
  output.summary(0, streams.size());
  outcome.out = out.str();
  outcome.err = err.str();
  outcome.good = output.good();
  return outcome;
}

std::vector<Event> calls(std::uint64_t seed) {
  return {{},
          {.kind = Kind::frames, .count = 5000 + seed},
          {.kind = Kind::flush, .cause = Cause::endpoint},
          {.kind = Kind::frames, .count = 700},
          {.kind = Kind::size, .cause = Cause::load, .count = 900},
          {.kind = Kind::frames, .count = 2500},
          {.kind = Kind::gap, .cause = Cause::load, .count = 333},
          {.kind = Kind::frames, .count = 40},
          {.kind = Kind::frames, .count = 1999},
          {.kind = Kind::flush, .mark = seed},
          {.kind = Kind::gap, .cause = Cause::rejected, .count = 1},
          {.kind = Kind::frames, .count = 1600},
          {.kind = seed % 2 == 0 ? Kind::end : Kind::abort}};
}

std::vector<WrittenStream> some_streams() {
  ChunkRule rule{.spec = {.size = 1600, .left = 300, .right = 200}};
  rule.sizes = {.by = SizeRule::By::adaptive,
                .sizes = SizeList(std::vector<std::uint32_t>{900, 1600})};
  std::vector<WrittenStream> streams;
  for (std::uint64_t number = 1; number <= 5; ++number)
    streams.emplace_back(number, rule, calls(number));
  return streams;
}

}  // namespace

TEST_CASE("a worker gets the rows and the windows of the recorded streams") {
  const TemporaryDirectory directory;
  const auto streams = some_streams();
  write_streams(directory.path(), streams, GENERATE(1, 3, 100));
  const Outcome outcome = replay(directory.path());
  INFO(outcome.err);
  CHECK(outcome.good);
  for (const WrittenStream& stream : streams)
    CHECK(outcome.rows.at(stream.meta.name) == expected(stream));
}

TEST_CASE("answers are printed as lines of JSON") {
  const TemporaryDirectory directory;
  const std::vector<WrittenStream> streams{
      {7,
       {.spec = {.size = 1600}},
       {{}, {.kind = Kind::frames, .count = 1600}, {.kind = Kind::end}}}};
  write_streams(directory.path(), streams);
  CHECK(replay(directory.path()).out ==
        R"({"number":7,"stream":"call-7","type":"result","seq":0,"begin":0,"end":1600,)"
        R"("begin_s":0,"end_s":0.1,"flags":["START","RESET","SEGMENT"],"data":{"at":0}})"
        "\n");
}

TEST_CASE("replayed answers are compared with the recorded ones") {
  const TemporaryDirectory directory;
  auto streams = some_streams();
  for (WrittenStream& stream : streams)
    for (const Row& row : stream.rows())
      if (row.has_frames() && stream.meta.number != 5)
        stream.answers[row.seq] = answer_to(row.begin);
  write_streams(directory.path(), streams);
  SECTION("equal") {
    const Outcome outcome = replay(directory.path(), true);
    INFO(outcome.err);
    CHECK(outcome.good);
    CHECK(outcome.out.empty());
    CHECK(outcome.err.find("4 without a difference, 0 with one, 1 without recorded answers") !=
          std::string::npos);
    CHECK(outcome.err.find("stream 5: has no recorded answers") != std::string::npos);
  }
  SECTION("different") {
    const Outcome outcome = replay(directory.path(), true, 2);
    CHECK_FALSE(outcome.good);
    CHECK(outcome.out.find(
              R"({"number":1,"stream":"call-1","type":"difference","seq":2,"begin":3200,)"
              R"("end":4800,"recorded":{"data":{"at":3200}},"replayed":{"data":null}})") !=
          std::string::npos);
    CHECK(std::ranges::count(outcome.out, '\n') == 4);
  }
}

TEST_CASE("rows are cut by another rule") {
  const TemporaryDirectory directory;
  std::vector<WrittenStream> streams = some_streams();
  write_streams(directory.path(), streams);
  const Outcome outcome = replay(directory.path(), false, {}, "size=50ms,left=7");
  for (WrittenStream stream : streams) {
    stream.rule = {.spec = {.size = 800, .left = 7}};
    std::erase_if(stream.events, [](const Event& event) {
      return event.kind == Kind::size || event.cause == Cause::endpoint;
    });
    CHECK(outcome.rows.at(stream.meta.name) == expected(stream));
  }
}

TEST_CASE("a damaged part is named, and the replay goes on") {
  const TemporaryDirectory directory;
  std::vector<WrittenStream> streams;
  // Each slice has a chunk of its own.
  for (std::uint64_t number = 1; number <= 2; ++number) {
    std::vector<Event> events{{}};
    for (int i = 0; i < 6; ++i) events.push_back({.kind = Kind::frames, .count = 40'000});
    events.push_back({.kind = Kind::end});
    streams.emplace_back(number, ChunkRule{.spec = {.size = 1600}}, events);
  }
  write_streams(directory.path(), streams, 1);
  std::fstream file(directory / "0000000001.mcap", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(400'000);
  file.put('x').put('y');
  file.close();
  const Outcome outcome = replay(directory.path());
  INFO(outcome.err);
  CHECK(outcome.good);
  CHECK(outcome.err.find("are missing (1 event): damaged: file 1") != std::string::npos);
  CHECK(outcome.err.find("missing parts: 1") != std::string::npos);
  CHECK(outcome.rows.size() == 2);
}
