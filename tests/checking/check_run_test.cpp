// SPDX-License-Identifier: Apache-2.0
#include "checking/check_run.h"

#include <sys/stat.h>

#include <array>
#include <catch2/catch.hpp>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "tests/checking/plan/streams.h"
#include "tests/support/temporary_directory.h"
#include "workers/library/worker.h"

using namespace millrace;
using namespace millrace::checking;
using namespace std::chrono_literals;

namespace {

PipelineOptions pipeline() {
  return parse_options("[[pipeline]]\nslots = 8\nchunk = { size = 4 }\nbatch = { rows = 4 }\n", "")
      ->options.pipelines.front();
}

// A check whose command is any process, while the worker is a thread of the test. The command says
// in `ready` that it runs.
struct Checked {
  TemporaryDirectory folder;
  std::string ready = folder / "ready";
  std::vector<CheckedStream> streams;
  CheckSettings settings{.pipeline = pipeline(),
                         .gpu = {.use = DeviceRule::Use::host},
                         .slab_bytes = 1 << 20,
                         .command = {"sh", "-c", "echo > " + ready + "; exec sleep 1000"}};

  Checked() {
    REQUIRE(::mkfifo(ready.c_str(), 0600) == 0);
    streams.emplace_back(counted_frames(12), FrameType(), settings.pipeline.chunk,
                         CheckedStream::Events(), std::vector<std::uint64_t>());
  }

  // One batch: row 0 of the stream, and this number of padding rows.
  Stage stage(std::uint32_t padding = 0) const {
    PlannedBatch batch{.rows = 1 + padding, .width = 4, .alone = true};
    batch.framed.push_back({.slot = 5, .id = StreamId{1}, .opens = true});
    return {.name = "one", .finding = "", .batches = {batch}};
  }

  // The rows [begin, end) of the stream, each in a batch.
  void add_rows(Stage& to, std::uint32_t begin, std::uint32_t end, std::uint64_t id) const {
    for (std::uint32_t row = begin; row < end; ++row) {
      PlannedBatch& batch = to.batches.emplace_back(PlannedBatch{.width = 4, .alone = true});
      const bool framed = streams[0].rows()[row].row.has_frames();
      if (framed) batch.rows = 1;
      (framed ? batch.framed : batch.marks)
          .push_back({.row = row,
                      .slot = 5,
                      .id = StreamId{id},
                      .opens = row == begin,
                      .leaves = row + 1 == end && end < streams[0].rows().size()});
    }
  }

  PlayedStage played(const Stage& of) {
    CheckRun run(settings, streams, folder.path());
    PlayedStage all = run.play(of, [](std::size_t) {});
    run.end();
    return all;
  }

  // Attaches when the command runs.
  std::jthread worker(const std::function<void(Worker&)>& work,
                      const std::string& name = "default") {
    return std::jthread([this, work, name] {
      std::ifstream(ready).get();
      try {
        Worker attached("unix:" + folder.path() + "/workers.sock", {.pipeline = name});
        work(attached);
      } catch (const WorkerError&) {  // the check has ended
      }
    });
  }

  // The error of a check that plays the stage.
  std::string error() {
    try {
      CheckRun run(settings, streams, folder.path());
      run.play(stage(), [](std::size_t) {});
      run.end();
    } catch (const std::runtime_error& failed) {
      return failed.what();
    }
    return "";
  }
};

void answer_all(Worker& worker) {
  while (auto batch = worker.next())
    worker.done(*batch, std::vector<Answer>(batch->framed().size(), {Answer::Kind::text, "yes"}));
}

}  // namespace

TEST_CASE_METHOD(Checked, "each row gets its answer, and the command ends at SIGTERM") {
  const auto thread = worker(answer_all);
  CheckRun run(settings, streams, folder.path());
  std::size_t handed = 0;
  const auto answers = run.play(stage(), [&](std::size_t batches) { handed = batches; }).answers;
  run.end();
  CHECK(handed == 1);
  CHECK(answers.at(0).at(0) == Answer{.kind = Answer::Kind::text, .data = "yes"});
  CHECK(answers.at(0).at(1) == Answer{});
}

TEST_CASE_METHOD(Checked, "padding rows have size 0, the slot after the last one, and values") {
  std::vector<std::int32_t> slots, sizes;
  std::vector<std::int16_t> values;
  std::size_t framed = 0;
  const auto thread = worker([&](Worker& attached) {
    while (auto batch = attached.next()) {
      framed = batch->framed().size();
      slots.assign(batch->slot().begin(), batch->slot().end());
      sizes.assign(batch->size().begin(), batch->size().end());
      for (std::uint32_t row = 0; row < batch->rows(); ++row) {
        const auto data = reinterpret_cast<const std::int16_t*>(batch->data().data());
        values.assign(data, data + batch->rows() * batch->width());
      }
      attached.done(*batch);
    }
  });
  CheckRun run(settings, streams, folder.path());
  run.play(stage(2), [](std::size_t) {});
  run.end();
  CHECK(framed == 1);
  CHECK(slots == std::vector<std::int32_t>{5, 8, 8});
  CHECK(sizes == std::vector<std::int32_t>{4, 0, 0});
  CHECK(values == std::vector<std::int16_t>{1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4});
}

TEST_CASE_METHOD(Checked,
                 "an answer that follows its batch is that of its row, with the endpoint of both") {
  const auto thread = worker([](Worker& attached) {
    while (auto batch = attached.next()) {
      const Answer pending{.kind = Answer::Kind::pending, .endpoint = true};
      attached.done(*batch, std::array{pending});
      attached.answer(StreamId{1}, 0, {.kind = Answer::Kind::text, .data = "late"});
    }
  });
  CHECK(played(stage()).answers.at(0).at(0) ==
        Answer{.kind = Answer::Kind::text, .data = "late", .endpoint = true});
}

// Answers each row with the next one of its stream, and an END row at once.
void answer_with_next(Worker& worker) {
  std::optional<worker_protocol::RowEntry> waits;
  while (auto batch = worker.next()) {
    const auto& rows = batch->framed().empty() ? batch->marks() : batch->framed();
    const worker_protocol::RowEntry row = rows.front();
    const Answer text{.kind = Answer::Kind::text, .data = std::to_string(row.seq)};
    const std::array answer{(row.flags & flag::end) != 0 ? text
                                                         : Answer{.kind = Answer::Kind::pending}};
    if (batch->framed().empty())
      worker.done(*batch, {}, answer);
    else
      worker.done(*batch, answer);
    if (waits)
      worker.answer(waits->stream, waits->seq,
                    {.kind = Answer::Kind::text, .data = std::to_string(waits->seq)});
    waits = (row.flags & flag::end) != 0 ? std::nullopt : std::optional(row);
  }
}

TEST_CASE_METHOD(Checked, "a worker may answer a pending row with the next one of its stream") {
  const auto thread = worker(answer_with_next);
  Stage all{.name = "all", .finding = "", .batches = {}};
  add_rows(all, 0, 4, 1);
  const auto answers = played(all).answers.at(0);
  for (std::size_t row = 0; row < 4; ++row) CHECK(answers.at(row).data == std::to_string(row));
}

TEST_CASE_METHOD(Checked, "a stream that leaves with a pending row ends at its worker") {
  const auto thread = worker(answer_with_next);
  Stage runs{.name = "runs", .finding = "", .batches = {}};
  add_rows(runs, 0, 2, 1);
  add_rows(runs, 2, 4, 2);
  const auto answers = played(runs).answers.at(0);
  for (std::size_t row = 0; row < 4; ++row) CHECK(answers.at(row).data == std::to_string(row));
}

TEST_CASE_METHOD(Checked,
                 "a row carries messages, and an opened stream has the options of before") {
  streams[0].set_options(R"({"a":1,"b":2})");
  streams[0].post(1, {.position = 5, .text = "[7]", .set = false});
  streams[0].post(1, {.position = 6, .text = R"({"b":3})", .set = true});
  std::vector<worker_protocol::Post> posts;
  std::vector<std::string> options;
  const auto thread = worker([&](Worker& attached) {
    while (auto batch = attached.next()) {
      for (const auto& post : batch->messages()) posts.push_back(post);
      for (const auto& opened : batch->opened()) options.push_back(opened.options);
      attached.done(*batch);
    }
  });
  Stage runs{.name = "runs", .finding = "", .batches = {}};
  add_rows(runs, 0, 2, 1);
  add_rows(runs, 2, 4, 2);
  played(runs);
  CHECK(posts == std::vector<worker_protocol::Post>{{StreamId{1}, 1, 5, "[7]", false},
                                                    {StreamId{1}, 1, 6, R"({"b":3})", true}});
  CHECK(options == std::vector<std::string>{R"({"a":1,"b":2})", R"({"a":1,"b":3})"});
}

TEST_CASE_METHOD(Checked, "the messages of the worker to a stream are kept in order") {
  const auto thread = worker([](Worker& attached) {
    for (int number = 0; auto batch = attached.next(); ++number) {
      const auto send = [&](const std::string& text) {
        (void)attached.send(StreamId{1}, {.kind = Answer::Kind::text, .data = text});
      };
      send("before " + std::to_string(number));
      attached.done(*batch);
      if (number == 2) send("after 2");
    }
  });
  Stage all{.name = "all", .finding = "", .batches = {}};
  add_rows(all, 0, 4, 1);
  std::vector<std::string> texts;
  const PlayedStage of_all = played(all);
  for (const Answer& message : of_all.messages.at(0)) texts.push_back(message.data);
  CHECK(texts ==
        std::vector<std::string>{"before 0", "before 1", "before 2", "after 2", "before 3"});
}

TEST_CASE_METHOD(Checked, "a command that cannot be run is named") {
  settings.command = {"/no/such/worker"};
  CHECK(error() == "/no/such/worker: cannot be run: No such file or directory");
}

TEST_CASE_METHOD(Checked, "the error says how a command ended") {
  settings.command = {"sh", "-c", "exit 3"};
  CHECK(error() == "the command ended with exit code 3 before the end of the check");
  settings.command = {"sh", "-c", "kill -9 $$"};
  CHECK(error() == "the command was ended by signal 9 before the end of the check");
}

TEST_CASE_METHOD(Checked, "a command that attaches no worker is an error") {
  settings.command = {"sleep", "1000"};
  settings.attach_limit = 10ms;
  CHECK(error() == "the command has not attached a worker to $MILLRACE_WORKERS within 10ms");
}

TEST_CASE_METHOD(Checked, "a worker of another pipeline is an error that names both") {
  const auto thread = worker(answer_all, "other");
  CHECK(error().starts_with(
      "the worker attaches to pipeline other; the check is of pipeline default"));
}

TEST_CASE_METHOD(Checked, "a worker that does not answer is an error") {
  settings.pipeline.first_answer_wait = 20ms;
  const auto thread = worker([](Worker& attached) {
    const auto batch = attached.next();
    while (!attached.ended()) (void)attached.next();
  });
  CHECK(error() == "the worker has not answered a batch within 20ms");
}

TEST_CASE_METHOD(Checked, "a worker that leaves is an error") {
  settings.end_limit = 50ms;
  const auto thread = worker([](Worker& attached) {
    attached.bye();
    while (!attached.ended()) (void)attached.next();
  });
  CHECK(error().starts_with("the worker left: it sent Bye"));
}

TEST_CASE_METHOD(Checked, "a worker that closes its connection is an error") {
  settings.end_limit = 50ms;
  const auto thread = worker([](Worker& attached) { (void)attached.next(); });
  settings.command.back() = "echo > " + ready + "; read line < " + ready;
  CHECK(error().starts_with("the worker has closed its connection"));
}

TEST_CASE_METHOD(Checked, "a command that ignores SIGTERM is an error") {
  settings.command.back() = "trap '' TERM; echo > " + ready + "; while :; do sleep 1000; done";
  settings.end_limit = 50ms;
  const auto thread = worker(answer_all);
  CHECK(error() == "the command has not ended within 50ms after SIGTERM");
}

TEST_CASE_METHOD(Checked, "a check that is stopped ends with an error") {
  settings.command = {"sleep", "1000"};
  CheckRun run(settings, streams, folder.path());
  run.stop();
  CHECK_THROWS_WITH(run.play(stage(), [](std::size_t) {}), "stopped by a signal");
}
